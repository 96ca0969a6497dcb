// SPDX-License-Identifier: BSL-1.0
//! rslock's side of the interop tests. agents.py has the commands. Each command is a task of tokio.
use rslock::{Lock, LockManager};
use std::collections::HashMap;
use std::error::Error;
use std::io::BufRead;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(10);
const MANY: u32 = 1_000_000;

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[derive(Clone)]
struct Place {
    once: LockManager,
    patient: LockManager,
    ttl: Duration,
}

#[derive(Default)]
struct Agent {
    places: Mutex<HashMap<String, Place>>,
    held: Mutex<HashMap<String, Lock>>,
}

fn manager(hosts: &str, tries: u32) -> LockManager {
    let mut made = LockManager::new(hosts.split(',').map(|host| format!("redis://{host}")).collect());
    made.set_retry(tries, PAUSE);
    made
}

fn decoded(text: &str) -> Result<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, after)) = rest.split_first() {
        if first == b'%' {
            bytes.push(u8::from_str_radix(std::str::from_utf8(&after[..2])?, 16)?);
            rest = &after[2..];
        } else {
            bytes.push(first);
            rest = after;
        }
    }
    Ok(String::from_utf8(bytes)?)
}

async fn stress(place: &Place, name: &str, ttl: Duration, rounds: u64, lasts: Duration, counter: &str) -> Result<String> {
    let end = Instant::now() + lasts;
    let mut done = 0;
    while done < rounds && Instant::now() < end {
        let lock = place.patient.acquire_no_guard(name.as_bytes(), ttl).await?;
        let before: u64 = std::fs::read_to_string(counter)?.trim().parse()?;
        tokio::time::sleep(Duration::from_millis(1)).await;
        std::fs::write(counter, (before + 1).to_string())?;
        lock.release().await;
        done += 1;
    }
    Ok(format!("ok {done}"))
}

impl Agent {
    /// task verb place kind name words…
    async fn perform(&self, words: &[&str]) -> Result<String> {
        let (verb, name) = (words[1], words[4]);
        if verb == "connect" {
            let place = Place {
                once: manager(name, 1),
                patient: manager(name, MANY),
                ttl: Duration::from_millis(words[5].parse()?),
            };
            self.places.lock().unwrap().insert(words[2].to_string(), place);
            return Ok("ok".to_string());
        }
        let place = self.places.lock().unwrap()[words[2]].clone();
        let key = [words[0], words[2], name].join(" ");
        let ttl = match words.get(5) {
            None | Some(&"-") => place.ttl,
            Some(number) => Duration::from_millis(number.parse()?),
        };
        let name = decoded(name)?;
        match verb {
            "lock" | "try" => {
                let got = if verb == "lock" {
                    Ok(place.patient.acquire_no_guard(name.as_bytes(), ttl).await?)
                } else {
                    place.once.lock(name.as_bytes(), ttl).await
                };
                match got {
                    Ok(lock) => self.held.lock().unwrap().insert(key, lock),
                    Err(rslock::LockError::Unavailable) => return Ok("busy".to_string()),
                    Err(failure) => return Err(failure.into()),
                };
                Ok("ok".to_string())
            }
            "unlock" => {
                let lock = self.held.lock().unwrap().remove(&key).ok_or("nothing is held")?;
                lock.release().await; // it does not say
                Ok("ok".to_string())
            }
            "renew" => {
                let lock = self.held.lock().unwrap().remove(&key).ok_or("nothing is held")?;
                match place.once.extend(&lock, ttl).await {
                    Ok(longer) => {
                        self.held.lock().unwrap().insert(key, longer);
                        Ok("ok".to_string())
                    }
                    Err(rslock::LockError::Unavailable) => Ok("lost".to_string()),
                    Err(failure) => Err(failure.into()),
                }
            }
            "stress" => {
                let lasts = Duration::from_millis(words[7].parse()?);
                stress(&place, &name, ttl, words[6].parse()?, lasts, &decoded(words[8])?).await
            }
            _ => Err("unknown command".into()),
        }
    }
}

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let agent = Arc::new(Agent::default());
    for line in std::io::stdin().lock().lines() {
        let (line, agent) = (line?, agent.clone());
        runtime.spawn(async move {
            let words: Vec<&str> = line.split(' ').collect();
            let reply = match agent.perform(&words[1..]).await {
                Ok(reply) => reply,
                Err(failure) => format!("error {}", failure.to_string().replace('\n', " ")),
            };
            println!("{} {}", words[0], reply);
        });
    }
    Ok(())
}
