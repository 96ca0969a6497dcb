// SPDX-License-Identifier: BSL-1.0

// agent redsync|bsm/redislock: their side of the interop tests. agents.py has the commands. Each task is a goroutine.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	pools "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

const pause = 3 * time.Millisecond

type lock interface {
	release() (bool, error)
	renew(ttl time.Duration) (bool, error)
}

// One server, or several of which a majority grants a lock. Nil: busy.
type locks interface {
	take(name string, ttl time.Duration, waits bool) (lock, error)
}

func client(host string) *redis.Client {
	const enough = 10 * time.Second // a busy machine is no outage
	return redis.NewClient(&redis.Options{Addr: host, DialTimeout: enough, ReadTimeout: enough, MaxRetries: -1, PoolSize: 40})
}

type redsyncLocks struct{ sync *redsync.Redsync }
type redsyncLock struct{ mutex *redsync.Mutex }

func newRedsync(hosts []string) locks {
	var all []pools.Pool
	for _, host := range hosts {
		all = append(all, goredis.NewPool(client(host)))
	}
	return redsyncLocks{redsync.New(all...)}
}

func (l redsyncLocks) take(name string, ttl time.Duration, waits bool) (lock, error) {
	mutex := l.sync.NewMutex(name, redsync.WithExpiry(ttl), redsync.WithTimeoutFactor(0.5))
	for {
		err := mutex.TryLock()
		if err == nil {
			return redsyncLock{mutex}, nil
		}
		if !waits {
			return nil, unlessTaken(err)
		}
		time.Sleep(pause)
	}
}

func (l redsyncLock) release() (bool, error) {
	released, err := l.mutex.Unlock()
	if released {
		return true, nil
	}
	return false, unlessTaken(err)
}

// Nil if a majority has answered that the lock is free, or another's.
func unlessTaken(err error) error {
	var taken *redsync.ErrTaken
	if errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed) || errors.Is(err, redsync.ErrLockAlreadyExpired) {
		return nil
	}
	return err
}

func (l redsyncLock) renew(time.Duration) (bool, error) { return l.mutex.Extend() }

type bsmLocks struct{ client *redislock.Client }
type bsmLock struct{ lock *redislock.Lock }

func newBsm(hosts []string) locks { return bsmLocks{redislock.New(client(hosts[0]))} }

func (l bsmLocks) take(name string, ttl time.Duration, waits bool) (lock, error) {
	for {
		got, err := l.client.Obtain(context.Background(), name, ttl, nil)
		if err == nil {
			return bsmLock{got}, nil
		}
		if !errors.Is(err, redislock.ErrNotObtained) {
			return nil, err
		}
		if !waits {
			return nil, nil
		}
		time.Sleep(pause)
	}
}

func (l bsmLock) release() (bool, error) {
	err := l.lock.Release(context.Background())
	if errors.Is(err, redislock.ErrLockNotHeld) {
		return false, nil
	}
	return err == nil, err
}

func (l bsmLock) renew(ttl time.Duration) (bool, error) {
	err := l.lock.Refresh(context.Background(), ttl, nil)
	if errors.Is(err, redislock.ErrNotObtained) {
		return false, nil
	}
	return err == nil, err
}

type place struct {
	locks locks
	ttl   time.Duration
}

type agent struct {
	connect func(hosts []string) locks
	state   sync.Mutex
	places  map[string]place
	held    map[string]lock
}

func milliseconds(word string) time.Duration {
	number, _ := strconv.Atoi(word)
	return time.Duration(number) * time.Millisecond
}

func result(done bool, err error) (string, error) {
	if err != nil {
		return "", err
	}
	if !done {
		return "lost", nil
	}
	return "ok", nil
}

// task verb place kind name words…
func (a *agent) perform(words []string) (string, error) {
	task, verb, where, name := words[0], words[1], words[2], words[4]
	key := task + " " + where + " " + name
	a.state.Lock()
	if verb == "connect" {
		a.places[where] = place{a.connect(strings.Split(name, ",")), milliseconds(words[5])}
	}
	at, mine := a.places[where], a.held[key]
	a.state.Unlock()
	ttl := at.ttl
	if len(words) > 5 && words[5] != "-" {
		ttl = milliseconds(words[5])
	}
	name, err := url.PathUnescape(name)
	if err != nil {
		return "", err
	}
	switch verb {
	case "connect":
		return "ok", nil
	case "lock", "try":
		got, err := at.locks.take(name, ttl, verb == "lock")
		if err != nil || got == nil {
			return "busy", err
		}
		a.state.Lock()
		a.held[key] = got
		a.state.Unlock()
		return "ok", nil
	case "unlock":
		return result(mine.release())
	case "renew":
		return result(mine.renew(ttl))
	case "stress":
		rounds, _ := strconv.Atoi(words[6])
		counter, err := url.PathUnescape(words[8])
		if err != nil {
			return "", err
		}
		return stress(at.locks, name, ttl, rounds, milliseconds(words[7]), counter)
	}
	return "", errors.New("unknown command")
}

func stress(all locks, name string, ttl time.Duration, rounds int, lasts time.Duration, counter string) (string, error) {
	end, done := time.Now().Add(lasts), 0
	for ; done < rounds && time.Now().Before(end); done++ {
		got, err := all.take(name, ttl, true)
		if err != nil {
			return "", err
		}
		text, err := os.ReadFile(counter)
		if err != nil {
			return "", err
		}
		before, err := strconv.Atoi(string(text))
		if err != nil {
			return "", err
		}
		time.Sleep(time.Millisecond)
		if err := os.WriteFile(counter, []byte(strconv.Itoa(before+1)), 0o600); err != nil {
			return "", err
		}
		if _, err := got.release(); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("ok %d", done), nil
}

func (a *agent) answer(words []string) {
	reply, err := a.perform(words[1:])
	if err != nil {
		reply = "error " + strings.ReplaceAll(err.Error(), "\n", " ")
	}
	a.state.Lock()
	defer a.state.Unlock()
	fmt.Println(words[0], reply)
}

func main() {
	connect := map[string]func([]string) locks{"redsync": newRedsync, "bsm/redislock": newBsm}[os.Args[1]]
	a := &agent{connect: connect, places: map[string]place{}, held: map[string]lock{}}
	input := bufio.NewScanner(os.Stdin)
	for input.Scan() {
		go a.answer(strings.Split(input.Text(), " "))
	}
}
