#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "podresources/client.h"
#include "test/support/status.h"
#include "test/support/temp_tree.h"

namespace podresources {
namespace {

using absl::StatusCode;
using test::StatusIs;
using testing::HasSubstr;

// Answers every call of every service with bytes that are no message.
class Stranger : public grpc::CallbackGenericService {
  class Reactor : public grpc::ServerGenericBidiReactor {
   public:
    Reactor() : reply_(&slice_, 1) { StartRead(&request_); }
    void OnReadDone(bool /*ok*/) override { StartWriteAndFinish(&reply_, {}, grpc::Status::OK); }
    void OnDone() override { delete this; }

   private:
    const grpc::Slice slice_{"\xff\xff\xff"};
    grpc::ByteBuffer request_;
    const grpc::ByteBuffer reply_;
  };
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* /*context*/) override {
    return new Reactor;
  }
};

TEST(GrpcClient, SaysThatAReplyIsNoPodresourcesMessage) {
  const test::TempTree tree;
  Stranger stranger;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + tree.Path("other.sock"), grpc::InsecureServerCredentials());
  builder.RegisterCallbackGenericService(&stranger);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  base::SystemClock clock;
  ConnectOptions options;
  options.socket = tree.Path("other.sock");
  EXPECT_THAT(Connect(options, clock)->Read(),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("no podresources message")));
}

}  // namespace
}  // namespace podresources
