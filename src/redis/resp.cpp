// SPDX-License-Identifier: BSL-1.0
#include "redis/resp.hpp"

#include <hiredis/hiredis.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <new>
#include <optional>

namespace holdfast::redis {

namespace {

// Type, length and line ends around one value. They do not count, so that a value of the largest size may come in
// pieces.
constexpr std::size_t longest_frame = 32;
constexpr std::size_t end_of_line = 2;
constexpr std::size_t length_of_one_digit = std::string_view("$1\r\n").size();

constexpr const char* no_memory = "out of memory";

// The end is passed by value: a char* may alias the writer, so the compiler would reload a member after each byte.
char* write_end_of_line(char* to) noexcept {
  *to++ = '\r';
  *to++ = '\n';
  return to;
}
char* write_length(char* to, char type, std::size_t length) noexcept {
  *to++ = type;
  if (length < 10) {
    *to++ = static_cast<char>('0' + length);
  } else if (length < 100) {
    *to++ = static_cast<char>('0' + length / 10);
    *to++ = static_cast<char>('0' + length % 10);
  } else {
    to = std::to_chars(to, to + longest_frame, length).ptr;
  }
  return write_end_of_line(to);
}

}  // namespace

void command_writer::begin(std::size_t arguments) {
  need(longest_frame);
  end_ = write_length(end_, '*', arguments);
}

void command_writer::add(std::string_view argument) {
  need(longest_frame + argument.size());
  end_ = write_length(end_, '$', argument.size());
  put(argument);
  end_ = write_end_of_line(end_);
}

void command_writer::add(std::span<const std::string_view> parts) {
  std::size_t size = 0;
  for (const auto part : parts) size += part.size();
  need(longest_frame + size);
  end_ = write_length(end_, '$', size);
  for (const auto part : parts) put(part);
  end_ = write_end_of_line(end_);
}

void command_writer::add_encoded(std::string_view bytes) { put(bytes); }

void command_writer::add(std::int64_t number) {
  constexpr std::size_t most_digits = 20;
  need(longest_frame + most_digits);
  if (number >= 0 && number < 10) {  // how many keys there are, most often
    auto* const to = write_length(end_, '$', 1);
    *to = static_cast<char>('0' + number);
    end_ = write_end_of_line(to + 1);
    return;
  }
  // The digits go behind a length of one digit, which is most often right.
  auto* const digits = end_ + length_of_one_digit;
  const auto size = static_cast<std::size_t>(std::to_chars(digits, digits + most_digits, number).ptr - digits);
  if (size > 9) std::memmove(digits + 1, digits, size);
  end_ = write_end_of_line(write_length(end_, '$', size) + size);
}

// An argument that does not fit goes straight to the output; the end of its line always finds room.
void command_writer::put(std::string_view bytes) {
  if (bytes.size() + end_of_line <= room()) {
    end_ = std::copy(bytes.begin(), bytes.end(), end_);
    return;
  }
  flush();
  out_ += bytes;
}

void command_writer::flush() {
  out_.append(buffer_.data(), end_);
  end_ = buffer_.data();
}

void append_command(std::string& out, std::span<const std::string_view> argv) {
  command_writer to(out);
  to.begin(argv.size());
  for (const auto argument : argv) to.add(argument);
  to.flush();
}

std::string make_command(std::initializer_list<std::string_view> argv) {
  std::size_t size = 16;
  for (const auto argument : argv) size += argument.size() + 16;
  std::string out;
  out.reserve(size);
  append_command(out, std::span(argv.begin(), argv.size()));
  return out;
}

// hiredis calls back for each value that it has parsed. Values are put straight into the tree under `root`, and the
// size of an array is checked before anything is allocated for it. No exception may leave a callback: hiredis is C.
struct reader::impl {
#if HIREDIS_MAJOR >= 1
  using array_size = std::size_t;
#else
  using array_size = int;
#endif

  explicit impl(reader_limits caps) : limits(caps), parser(redisReaderCreateWithFunctions(functions())) {
    if (!parser) throw std::bad_alloc();
    parser->privdata = this;
    // Its buffer is kept: 0.14 gives a large one back when it is empty, and aborts when it gets no new one for it.
    parser->maxbuf = 0;
  }
  ~impl() { redisReaderFree(parser); }
  impl(const impl&) = delete;
  impl& operator=(const impl&) = delete;

  static redisReplyObjectFunctions* functions() {
    static redisReplyObjectFunctions table = [] {
      redisReplyObjectFunctions functions{};
      functions.createString = create_string;
      functions.createArray = create_array;
      functions.createInteger = create_integer;
      functions.createNil = create_nil;
#if HIREDIS_MAJOR >= 1  // without these two hiredis makes pointers up
      functions.createDouble = [](const redisReadTask* task, double, char*, size_t) {
        return of(task).refuse("RESP3 double");
      };
      functions.createBool = [](const redisReadTask* task, int) { return of(task).refuse("RESP3 boolean"); };
#endif
      functions.freeObject = [](void*) {};  // the tree belongs to `root`
      return functions;
    }();
    return &table;
  }

  static impl& of(const redisReadTask* task) { return *static_cast<impl*>(task->privdata); }

  static void* create_string(const redisReadTask* task, char* text, size_t length) noexcept try {
    auto& self = of(task);
    const auto type = kind_of(task->type);
    if (!type) return self.refuse("RESP3 string");
    if (!self.take(length)) return nullptr;
    auto* reply = self.slot(task);
    if (!reply) return nullptr;
    reply->type = *type;
    reply->text.assign(text, length);
    return reply;
  } catch (const std::bad_alloc&) {
    return of(task).refuse(no_memory);
  }

  static void* create_array(const redisReadTask* task, array_size count) noexcept try {
    auto& self = of(task);
    if (task->type != REDIS_REPLY_ARRAY) return self.refuse("RESP3 aggregate");
    const auto elements = static_cast<std::size_t>(count);  // negative: beyond every limit
    if (elements > self.limits.elements) return self.refuse("array too long");
    if (depth(task) > self.limits.depth) return self.refuse("arrays nested too deeply");
    if (!self.take(elements * sizeof(reply))) return nullptr;
    auto* reply = self.slot(task);
    if (!reply) return nullptr;
    reply->type = reply::kind::array;
    reply->elements.resize(elements);
    return reply;
  } catch (const std::bad_alloc&) {
    return of(task).refuse(no_memory);
  }

  static void* create_integer(const redisReadTask* task, long long value) noexcept {
    auto* reply = of(task).slot(task);
    if (!reply) return nullptr;
    reply->type = reply::kind::integer;
    reply->integer = value;
    return reply;
  }

  static void* create_nil(const redisReadTask* task) noexcept {
    const bool resp2 = task->type == REDIS_REPLY_STRING || task->type == REDIS_REPLY_ARRAY;
    return resp2 ? of(task).slot(task) : of(task).refuse("RESP3 null");
  }

  static std::optional<reply::kind> kind_of(int type) {
    switch (type) {
      case REDIS_REPLY_STRING: return reply::kind::string;
      case REDIS_REPLY_STATUS: return reply::kind::status;
      case REDIS_REPLY_ERROR: return reply::kind::error;
      default: return std::nullopt;
    }
  }

  static std::size_t depth(const redisReadTask* task) {
    std::size_t n = 1;
    for (; task->parent; task = task->parent) ++n;
    return n;
  }

  /// Where the value of `task` belongs.
  reply* slot(const redisReadTask* task) noexcept {
    if (!task->parent) {
      const bool plain = root.type == reply::kind::nil || root.type == reply::kind::integer;
      if (plain)
        root.type = reply::kind::nil;
      else
        root = reply{};
      return &root;
    }
    auto& siblings = static_cast<reply*>(task->parent->obj)->elements;
    const auto index = static_cast<std::size_t>(task->idx);
    if (index >= siblings.size()) {
      refuse("array longer than announced");
      return nullptr;
    }
    return &siblings[index];
  }

  bool take(std::size_t bytes) noexcept {
    taken += bytes;
    if (taken <= limits.bytes) return true;
    refuse("reply too large");
    return false;
  }

  /// hiredis takes a null result of a callback for a lack of memory, so the cause is noted here.
  void* refuse(const char* why) noexcept {
    if (!refused) refused = why;
    return nullptr;
  }

  void fail() noexcept { fail(refused ? refused : parser->err == REDIS_ERR_OOM ? no_memory : parser->errstr); }

  void fail(const char* why) noexcept {
    failed = true;
    root = reply{};
    out_of_memory = why == no_memory;
    try {
      failure = why;
    } catch (const std::bad_alloc&) {
      failure = no_memory;  // short enough to need none
    }
  }

  reader_limits limits;
  redisReader* parser;
  reply root;
  std::size_t taken = 0;  // bytes of the reply being parsed that went into `root`
  const char* refused = nullptr;
  std::string failure;
  bool failed = false;
  bool out_of_memory = false;
};

reader::reader(reader_limits limits) : impl_(std::make_unique<impl>(limits)) {}
reader::~reader() = default;
reader::reader(reader&&) noexcept = default;
reader& reader::operator=(reader&&) noexcept = default;

void reader::feed(std::string_view bytes) {
  if (impl_->failed) return;
  if (redisReaderFeed(impl_->parser, bytes.data(), bytes.size()) != REDIS_OK) impl_->fail();
}

reply* reader::next() {
  auto& reader = *impl_;
  const bool all_read = reader.parser->pos == reader.parser->len;
  if (reader.failed || all_read) return nullptr;
  void* whole = nullptr;
  if (redisReaderGetReply(reader.parser, &whole) != REDIS_OK) {
    reader.fail();
    return nullptr;
  }
  if (whole) {
    reader.taken = 0;
    return &reader.root;
  }
  if (reader.taken + (reader.parser->len - reader.parser->pos) > reader.limits.bytes + longest_frame)
    reader.fail("reply too large");
  return nullptr;
}

bool reader::failed() const noexcept { return impl_->failed; }
const std::string& reader::failure() const noexcept { return impl_->failure; }
bool reader::out_of_memory() const noexcept { return impl_->out_of_memory; }

}  // namespace holdfast::redis
