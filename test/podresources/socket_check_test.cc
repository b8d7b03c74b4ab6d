#include "podresources/socket_check.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <chrono>
#include <optional>
#include <string>

#include "test/podresources/raw_server.h"
#include "test/support/status.h"
#include "test/support/temp_tree.h"

namespace podresources {
namespace {

using absl::StatusCode;
using std::chrono::milliseconds;
using test::RawServer;
using test::StatusIs;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

// As somebody who is not root, for as long as it lives: root may connect to everything.
class AsNobody {
 public:
  AsNobody() {
    if (geteuid() == 0 && seteuid(65534) != 0) ADD_FAILURE() << "cannot become nobody";
  }
  ~AsNobody() {
    if (getuid() == 0 && seteuid(0) != 0) ADD_FAILURE() << "cannot become root again";
  }
};

TEST(SocketCheck, SaysWhichPathIsMissingAndWhereElseAKubeletMayBe) {
  test::TempTree tree;
  EXPECT_THAT(TryConnect(tree.Path("kubelet/pod-resources/kubelet.sock")),
              StatusIs(StatusCode::kNotFound,
                       AllOf(HasSubstr("no socket " + tree.Path("kubelet/pod-resources/")),
                             HasSubstr("there is no folder"), HasSubstr("/var/lib/k0s/kubelet"),
                             HasSubstr("/var/snap/microk8s/common/var/lib/kubelet"))));
  tree.Folder("kubelet/pod-resources");
  EXPECT_THAT(TryConnect(tree.Path("kubelet/pod-resources/kubelet.sock")),
              StatusIs(StatusCode::kNotFound, HasSubstr("its folder is there")));
}

TEST(SocketCheck, TellsFoldersAndFilesFromSockets) {
  test::TempTree tree;
  tree.Put("file.sock", "").Folder("folder.sock");
  EXPECT_THAT(TryConnect(tree.Path("file.sock")),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("is a file, not a socket")));
  EXPECT_THAT(TryConnect(tree.Path("folder.sock")),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("is a folder, not a socket")));
}

TEST(SocketCheck, RefusesPathsThatNoSocketCanHave) {
  EXPECT_THAT(TryConnect("/tmp/" + std::string(103, 'x')),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("108 bytes, allowed are 1 to 107")));
  EXPECT_THAT(TryConnect(""), StatusIs(StatusCode::kInvalidArgument, HasSubstr("0 bytes")));
}

TEST(SocketCheck, CallsASocketThatNobodyListensOnStale) {
  test::TempTree tree;
  const std::string path = tree.Path("kubelet.sock");
  { const RawServer gone(path, ""); }
  EXPECT_THAT(TryConnect(path),
              StatusIs(StatusCode::kUnavailable, HasSubstr("socket file is stale")));
}

TEST(SocketCheck, NamesSelinuxWhereItIsEnforcing) {
  test::TempTree tree;
  tree.Put("enforcing", "1").Put("permissive", "0");
  chmod(tree.root().c_str(), 0755);
  const RawServer server(tree.Path("kubelet.sock"), "");
  chmod(tree.Path("kubelet.sock").c_str(), 0);
  const AsNobody nobody;
  EXPECT_THAT(TryConnect(tree.Path("kubelet.sock"), tree.Path("enforcing")),
              StatusIs(StatusCode::kPermissionDenied,
                       AllOf(HasSubstr("SELinux is enforcing"), HasSubstr("spc_t"),
                             HasSubstr("container_device_plugin_t"))));
  for (const std::string state : {"permissive", "no-such-file"}) {
    EXPECT_THAT(TryConnect(tree.Path("kubelet.sock"), tree.Path(state)),
                StatusIs(StatusCode::kPermissionDenied,
                         AllOf(HasSubstr("for root only"), Not(HasSubstr("SELinux")))));
  }
}

TEST(SocketCheck, SaysThatAFolderOnTheWayIsClosed) {
  test::TempTree tree;
  tree.Folder("closed");
  chmod(tree.Path("closed").c_str(), 0);
  const AsNobody nobody;
  EXPECT_THAT(TryConnect(tree.Path("closed/kubelet.sock")),
              StatusIs(StatusCode::kPermissionDenied, HasSubstr("closed/kubelet.sock")));
}

TEST(SocketCheck, KnowsANewSocketFileEvenUnderTheOldInode) {
  test::TempTree tree;
  const std::string path = tree.Path("kubelet.sock");
  std::optional<SocketIdentity> before;
  {
    const RawServer server(path, "");
    ASSERT_OK_AND_ASSIGN(before, IdentifySocket(path));
    ASSERT_OK_AND_ASSIGN(const SocketIdentity again, IdentifySocket(path));
    EXPECT_EQ(before, again);
  }
  unlink(path.c_str());
  const RawServer server(path, "");
  ASSERT_OK_AND_ASSIGN(const SocketIdentity after, IdentifySocket(path));
  EXPECT_NE(before, after);
}

TEST(SocketCheck, TellsOtherServersFromHttp2) {
  test::TempTree tree;
  const RawServer http1(tree.Path("http1"), "HTTP/1.1 400 Bad Request\r\n\r\n");
  EXPECT_THAT(CheckSpeaksHttp2(tree.Path("http1"), milliseconds(5000)),
              StatusIs(StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("is no kubelet"), HasSubstr("\"HTTP/1.1 \""))));
  const RawServer garbage(tree.Path("garbage"),
                          std::string("\0\x01\xff", 3) + std::string(64, 'g'));
  EXPECT_THAT(CheckSpeaksHttp2(tree.Path("garbage"), milliseconds(5000)),
              StatusIs(StatusCode::kInvalidArgument, HasSubstr("\"...gggggg\"")));
  const RawServer http2(tree.Path("http2"), std::string("\0\0\0\4\0\0\0\0\0", 9));
  EXPECT_OK(CheckSpeaksHttp2(tree.Path("http2"), milliseconds(5000)));
  const RawServer silent(tree.Path("silent"), "");
  EXPECT_OK(CheckSpeaksHttp2(tree.Path("silent"), milliseconds(20)));
}

}  // namespace
}  // namespace podresources
