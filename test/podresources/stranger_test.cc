#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>

#include "podresources/client.h"
#include "test/support/status.h"
#include "test/support/temp_tree.h"

namespace podresources {
namespace {

using absl::StatusCode;
using test::StatusIs;
using testing::HasSubstr;

// Answers every call of every service with the same bytes.
class Stranger : public grpc::CallbackGenericService {
  class Reactor : public grpc::ServerGenericBidiReactor {
   public:
    explicit Reactor(const std::string& bytes) : slice_(bytes), reply_(&slice_, 1) {
      StartRead(&request_);
    }
    void OnReadDone(bool /*ok*/) override { StartWriteAndFinish(&reply_, {}, grpc::Status::OK); }
    void OnDone() override { delete this; }

   private:
    const grpc::Slice slice_;
    grpc::ByteBuffer request_;
    const grpc::ByteBuffer reply_;
  };
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    if (packs_) context->set_compression_algorithm(GRPC_COMPRESS_GZIP);
    return new Reactor(bytes_);
  }
  const std::string bytes_;
  const bool packs_;

 public:
  explicit Stranger(std::string bytes, bool packs = false)
      : bytes_(std::move(bytes)), packs_(packs) {}
};

absl::StatusOr<Assignments> Ask(Stranger& stranger) {
  const test::TempTree tree;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + tree.Path("other.sock"), grpc::InsecureServerCredentials());
  builder.RegisterCallbackGenericService(&stranger);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  base::SystemClock clock;
  ConnectOptions options;
  options.socket = tree.Path("other.sock");
  options.max_message_bytes = 100'000;
  return Connect(options, clock)->Read();
}

TEST(GrpcClient, SaysThatAReplyIsNoPodresourcesMessage) {
  Stranger stranger("\xff\xff\xff");
  EXPECT_THAT(Ask(stranger),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("no podresources message")));
}

// gRPC would unpack the whole first, a thousand times what was sent, and then look at the limit:
// it would be OutOfRange.
TEST(GrpcClient, DoesNotUnpackWhatAServerHasPacked) {
  std::string pods;
  for (int i = 0; i < 100'000; ++i) pods += std::string("\x0a\0", 2);  // a pod without a name
  Stranger packer(pods, /*packs=*/true);
  EXPECT_THAT(Ask(packer),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("no podresources message")));
}

}  // namespace
}  // namespace podresources
