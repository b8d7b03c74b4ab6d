#include "cli/unpack.h"

#include <fmt/format.h>
#include <zlib.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "base/status_macros.h"

namespace cli {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 16;
constexpr int kGzipOnly = 16;  // added to the size of the window, as inflateInit2 wants it

std::string_view View(const unsigned char* bytes, std::size_t count) {
  return {reinterpret_cast<const char*>(bytes), count};
}

class UnpackedFile {
 public:
  UnpackedFile(const std::string& path, std::FILE* file) : path_(path), file_(file) {}
  ~UnpackedFile() {
    if (packed_) inflateEnd(&stream_);
  }
  UnpackedFile(const UnpackedFile&) = delete;
  UnpackedFile& operator=(const UnpackedFile&) = delete;

  // Looks how it begins; before all others.
  absl::Status Begin();
  // The next bytes; "" at the end. The view holds until the next call.
  absl::StatusOr<std::string_view> Next() { return packed_ ? Unpack() : Plain(); }

 private:
  absl::Status Fill();
  absl::StatusOr<std::string_view> Plain();
  absl::StatusOr<std::string_view> Unpack();
  absl::Status Unreadable(const char* why) const;
  const char* WhyNoGzip() const;

  const std::string& path_;
  std::FILE* const file_;
  std::vector<unsigned char> bytes_ = std::vector<unsigned char>(kPiece);  // of the file
  std::vector<unsigned char> unpacked_ = std::vector<unsigned char>(kPiece);
  z_stream stream_{};  // in the midst of bytes_
  bool packed_ = false;
  bool between_ = false;  // two members of a gzip file, or at its end
};

absl::Status UnpackedFile::Unreadable(const char* why) const {
  return absl::InvalidArgumentError(fmt::format("cannot read {}: {}", path_, why));
}

// Nothing in stream_ then is the end of the file.
absl::Status UnpackedFile::Fill() {
  if (stream_.avail_in > 0) return absl::OkStatus();
  const std::size_t count = std::fread(bytes_.data(), 1, bytes_.size(), file_);
  if (std::ferror(file_) != 0) return Unreadable(std::strerror(errno));
  stream_.next_in = bytes_.data();
  stream_.avail_in = static_cast<unsigned>(count);
  return absl::OkStatus();
}

absl::Status UnpackedFile::Begin() {
  RETURN_IF_ERROR(Fill());
  const bool is_gzip = stream_.avail_in >= 2 && bytes_[0] == 0x1f && bytes_[1] == 0x8b;
  if (!is_gzip) return absl::OkStatus();
  packed_ = inflateInit2(&stream_, MAX_WBITS + kGzipOnly) == Z_OK;
  return packed_ ? absl::OkStatus() : Unreadable("no memory to unpack it");
}

absl::StatusOr<std::string_view> UnpackedFile::Plain() {
  RETURN_IF_ERROR(Fill());
  const std::string_view plain = View(stream_.next_in, stream_.avail_in);
  stream_.avail_in = 0;
  return plain;
}

absl::StatusOr<std::string_view> UnpackedFile::Unpack() {
  std::size_t count = 0;
  while (count == 0) {
    RETURN_IF_ERROR(Fill());
    if (stream_.avail_in == 0 && between_) return std::string_view();
    if (stream_.avail_in == 0) return Unreadable("it is cut off");
    if (between_) inflateReset(&stream_);
    stream_.next_out = unpacked_.data();
    stream_.avail_out = static_cast<unsigned>(unpacked_.size());
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result != Z_OK && result != Z_STREAM_END) return Unreadable(WhyNoGzip());
    between_ = result == Z_STREAM_END;
    count = unpacked_.size() - stream_.avail_out;
  }
  return View(unpacked_.data(), count);
}

const char* UnpackedFile::WhyNoGzip() const {
  if (between_) return "something that is no gzip follows its end";
  return stream_.msg == nullptr ? "it is no gzip" : stream_.msg;
}

}  // namespace

absl::Status ReadUnpacked(const std::string& path,
                          const std::function<absl::Status(std::string_view)>& take) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rbe"),
                                                             std::fclose);
  if (file == nullptr) return absl::NotFoundError(fmt::format("cannot open {}", path));
  UnpackedFile unpacked(path, file.get());
  RETURN_IF_ERROR(unpacked.Begin());
  for (;;) {
    ASSIGN_OR_RETURN(const std::string_view piece, unpacked.Next());
    if (piece.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(take(piece));
  }
}

}  // namespace cli
