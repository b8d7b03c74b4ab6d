#include "kube/http_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <thread>
#include <utility>

#include "kube/connection.h"
#include "kube/tls.h"
#include "test/fakes/clock.h"
#include "test/kube/scripted_server.h"
#include "test/support/status.h"
#include "test/support/temp_tree.h"

namespace kube {
namespace {

using std::chrono::milliseconds;
using test::Answer;
using test::Reply;
using test::ScriptedServer;
using test::StatusIs;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr auto kUnavailable = absl::StatusCode::kUnavailable;
constexpr milliseconds kEnough{20'000};
constexpr milliseconds kLittle{100};  // for what never comes
constexpr std::size_t kMaxBytes = 1 << 20;

class HttpTransport : public testing::Test {
 protected:
  // Waits for no pause: the transport has none.
  std::unique_ptr<Transport> To(const Config& config, TransportOptions options = {}) {
    return MakeTransport(config, clock_, std::move(options)).value();
  }
  absl::StatusOr<HttpReply> Get(Transport& transport, milliseconds deadline = kEnough) {
    return transport.Send({.target = "/x?y=z"}, deadline, kMaxBytes, {});
  }

  test::FakeClock clock_;
  const test::Authority authority_;
  const test::ServerTls tls_{.own = authority_.Issue("server", "IP:127.0.0.1,DNS:kube.test")};

  Config Trusting(const ScriptedServer& server) const {
    return {.server = server.url(),
            .certificate_authority = {.text = authority_.certificate_pem()}};
  }
};

TEST_F(HttpTransport, SendsAndReceivesOverOneConnection) {
  ScriptedServer server(tls_);
  server.Then(Reply(200, "first", "Retry-After: 7\r\n")).Then(Reply(404, "second"));
  Config config = Trusting(server);
  config.server += "/prefix";
  config.token = "abc";
  const auto transport = To(config, {.user_agent = "me/1"});
  ASSERT_OK_AND_ASSIGN(const HttpReply first, Get(*transport));
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.body, "first");
  EXPECT_EQ(first.retry_after, "7");
  ASSERT_OK_AND_ASSIGN(
      const HttpReply second,
      transport->Send({"PATCH", "/y", "application/json", "{}"}, kEnough, kMaxBytes, {}));
  EXPECT_EQ(second.status, 404);
  const auto seen = server.requests();
  ASSERT_EQ(seen.size(), 2U);
  EXPECT_EQ(seen[0].method + " " + seen[0].target, "GET /prefix/x?y=z");
  EXPECT_EQ(seen[0].headers.at("authorization"), "Bearer abc");
  EXPECT_EQ(seen[0].headers.at("user-agent"), "me/1");
  EXPECT_EQ(seen[1].headers.at("content-type"), "application/json");
  EXPECT_EQ(seen[1].body, "{}");
  EXPECT_EQ(seen[1].connection, 1);
}

TEST_F(HttpTransport, ReadsTheTokenAnewForEachRequest) {
  test::TempTree tree;
  ScriptedServer server(tls_);
  server.Then(Reply(200, "")).Then(Reply(200, ""));
  Config config = Trusting(server);
  config.token_file = tree.Path("token");
  tree.Put("token", "first");
  const auto transport = To(config);
  ASSERT_OK(Get(*transport));
  tree.Put("token", "second");
  ASSERT_OK(Get(*transport));
  EXPECT_EQ(server.requests()[0].headers.at("authorization"), "Bearer first");
  EXPECT_EQ(server.requests()[1].headers.at("authorization"), "Bearer second");
}

TEST_F(HttpTransport, SendsNothingWithoutItsToken) {
  ScriptedServer server(tls_);
  Config config = Trusting(server);
  config.token_file = "/nowhere/token";
  EXPECT_THAT(Get(*To(config)),
              StatusIs(absl::StatusCode::kUnauthenticated, HasSubstr("/nowhere/token")));
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(HttpTransport, SendsNothingToAServerThatItDoesNotTrust) {
  const test::Authority stranger;
  ScriptedServer server(test::ServerTls{stranger.Issue("server", "IP:127.0.0.1")});
  EXPECT_THAT(Get(*To(Trusting(server))),
              StatusIs(kUnavailable, AllOf(HasSubstr("not trusted for 127.0.0.1"),
                                           HasSubstr("unable to get local issuer"))));
  EXPECT_TRUE(server.requests().empty());
}

TEST_F(HttpTransport, SendsNothingToAServerOfAnotherName) {
  for (const char* names : {"DNS:kube.test", "IP:127.0.0.2", "DNS:127.0.0.1", ""}) {
    ScriptedServer server(test::ServerTls{authority_.Issue("127.0.0.1", names)});
    EXPECT_THAT(Get(*To(Trusting(server))), StatusIs(kUnavailable, HasSubstr("mismatch"))) << names;
    EXPECT_TRUE(server.requests().empty());
  }
}

TEST_F(HttpTransport, SendsNothingToAServerWhoseCertificateHasExpired) {
  ScriptedServer server(test::ServerTls{authority_.Issue("server", "IP:127.0.0.1", -1)});
  EXPECT_THAT(Get(*To(Trusting(server))), StatusIs(kUnavailable, HasSubstr("has expired")));
}

TEST_F(HttpTransport, TakesTheNameThatItIsToldInsteadOfTheHosts) {
  ScriptedServer server(test::ServerTls{authority_.Issue("server", "DNS:kube.test")});
  server.Then(Reply(200, ""));
  Config config = Trusting(server);
  config.tls_server_name = "kube.test";
  EXPECT_OK(Get(*To(config)));
}

TEST_F(HttpTransport, SendsNothingWhereTheNameOfTheCertificateCannotBeExpected) {
  ScriptedServer server(tls_);
  server.Then(Reply(200, ""));
  Config config = Trusting(server);
  config.tls_server_name = std::string(300, 'a');  // longer than a name may be in TLS
  EXPECT_THAT(Get(*To(config)), StatusIs(kUnavailable, HasSubstr("certificate must have")));
  // For OpenSSL it would be any name.
  const Route nameless{.server = ParseUrl(server.url()).value(), .certificate_name = ""};
  const TlsIdentity identity{.authority_pem = authority_.certificate_pem()};
  Resolver resolver("127.0.0.1");
  const auto opened = Connection::Open(nameless, identity, resolver,
                                       std::chrono::steady_clock::now() + kEnough, {});
  EXPECT_THAT(opened.status(),
              StatusIs(kUnavailable, HasSubstr("certificate must have: is empty")));
}

TEST_F(HttpTransport, TrustsAServersOwnCertificateByItselfAndNoOtherOfItsSigner) {
  ScriptedServer server(tls_);
  server.Then(Reply(200, "hello"));
  ASSERT_OK_AND_ASSIGN(const ServerCertificate own,
                       ReadServerCertificate(tls_.own.certificate_pem + tls_.own.key_pem));
  EXPECT_EQ(own.name, "kube.test");
  EXPECT_THAT(own.pem, testing::Not(HasSubstr("PRIVATE")));
  const Config config{.server = server.url(), .certificate_authority = {.text = own.pem}};
  EXPECT_OK(Get(*To(config)));
  ScriptedServer sibling({{.own = authority_.Issue("sibling", "IP:127.0.0.1")}});
  EXPECT_THAT(Get(*To({.server = sibling.url(), .certificate_authority = {.text = own.pem}})),
              StatusIs(kUnavailable, HasSubstr("not trusted")));
}

TEST(ReadServerCertificate, SaysWhatItIsFor) {
  const test::Authority authority;
  const auto name_of = [&](const std::string& names) {
    return ReadServerCertificate(authority.Issue("x", names).certificate_pem)->name;
  };
  EXPECT_EQ(name_of("DNS:gpu-7"), "gpu-7");
  EXPECT_EQ(name_of("IP:10.0.0.7,DNS:gpu-7"), "gpu-7");
  EXPECT_EQ(name_of("IP:10.0.0.7"), "10.0.0.7");
  EXPECT_EQ(name_of("IP:fd00::7"), "fd00::7");
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_THAT(ReadServerCertificate(authority.Issue("x", "").certificate_pem),
              StatusIs(kInvalid, HasSubstr("for no name")));
  EXPECT_THAT(ReadServerCertificate("no certificate"),
              StatusIs(kInvalid, HasSubstr("no start line")));
}

TEST_F(HttpTransport, TrustsAnyServerWhereToldTo) {
  ScriptedServer server(test::ServerTls{test::Authority().Issue("server", "DNS:other")});
  server.Then(Reply(200, ""));
  EXPECT_OK(Get(*To({.server = server.url(), .insecure_skip_tls_verify = true})));
}

TEST_F(HttpTransport, ReadsTheAuthorityAnewForEachConnection) {
  test::TempTree tree;
  const test::Authority next;
  ScriptedServer server(test::ServerTls{next.Issue("server", "IP:127.0.0.1")});
  server.Then(Reply(200, ""));
  tree.Put("ca.crt", authority_.certificate_pem());
  const auto transport =
      To({.server = server.url(), .certificate_authority = {.file = tree.Path("ca.crt")}});
  EXPECT_THAT(Get(*transport), StatusIs(kUnavailable, HasSubstr("not trusted")));
  tree.Put("ca.crt", authority_.certificate_pem() + next.certificate_pem());
  EXPECT_OK(Get(*transport));
  tree.Put("ca.crt", "nonsense");
  EXPECT_THAT(Get(*transport), StatusIs(kUnavailable, HasSubstr("certificate authority")));
}

TEST_F(HttpTransport, DoesNotTrustTheSystemsAuthoritiesWhereTheFileOfItsOwnIsEmpty) {
  test::TempTree tree;
  tree.Put("ca.crt", "");
  ScriptedServer server(tls_);
  const auto transport =
      To({.server = server.url(), .certificate_authority = {.file = tree.Path("ca.crt")}});
  EXPECT_THAT(Get(*transport), StatusIs(kUnavailable, HasSubstr("ca.crt is empty")));
}

TEST_F(HttpTransport, ShowsItsCertificateAndANewOneByANewConnection) {
  test::TempTree tree;
  test::ServerTls asks = tls_;
  asks.client_authority_pem = authority_.certificate_pem();
  ScriptedServer server(asks);
  server.Then(Reply(200, "")).Then(Reply(200, "")).Then(Reply(200, ""));
  const auto use = [&](const char* name) {
    const test::Issued own = authority_.Issue(name, "");
    tree.Put("c", own.certificate_pem).Put("k", own.key_pem);
  };
  Config config = Trusting(server);
  config.client_certificate.file = tree.Path("c");
  config.client_key.file = tree.Path("k");
  const auto transport = To(config);
  use("first");
  ASSERT_OK(Get(*transport));
  ASSERT_OK(Get(*transport));
  use("second");
  ASSERT_OK(Get(*transport));
  const auto seen = server.requests();
  EXPECT_THAT((std::vector{seen[0].peer, seen[1].peer, seen[2].peer}),
              ElementsAre("first", "first", "second"));
  EXPECT_THAT((std::vector{seen[0].connection, seen[1].connection, seen[2].connection}),
              ElementsAre(1, 1, 2));
  tree.Put("k", authority_.Issue("other", "").key_pem);
  EXPECT_THAT(Get(*transport), StatusIs(kUnavailable, HasSubstr("the key of the certificate")));
}

TEST_F(HttpTransport, GoesByAProxyThatConnectsItThrough) {
  ScriptedServer server(tls_);
  server.Then(Reply(200, "through"));
  const test::ScriptedProxy proxy;
  Config config = Trusting(server);
  config.proxy_url = "http://me:s3cret@127.0.0.1:" + std::to_string(proxy.port());
  ASSERT_OK_AND_ASSIGN(const HttpReply reply, Get(*To(config)));
  EXPECT_EQ(reply.body, "through");
  EXPECT_THAT(proxy.heads(),
              ElementsAre(AllOf(HasSubstr("CONNECT 127.0.0.1:" + std::to_string(server.port())),
                                HasSubstr("Proxy-Authorization: Basic bWU6czNjcmV0\r\n"))));
}

TEST_F(HttpTransport, SaysWhatTheProxySays) {
  const test::ScriptedProxy proxy("HTTP/1.1 407 Proxy Authentication Required\r\n\r\n");
  EXPECT_THAT(Get(*To({.server = "https://192.0.2.1:6443", .proxy_url = proxy.url()})),
              StatusIs(kUnavailable, HasSubstr("the proxy refuses: HTTP 407 Proxy Auth")));
}

TEST_F(HttpTransport, TakesNothingThatTheProxySaysForTheServersReply) {
  ScriptedServer server(tls_);
  server.Then(Reply(200, "the server's"));
  const test::ScriptedProxy proxy(
      "HTTP/1.1 200 Connected\r\n\r\n"
      "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged");
  Config config = Trusting(server);
  config.proxy_url = proxy.url();
  EXPECT_THAT(Get(*To(config)), StatusIs(kUnavailable, HasSubstr("before it was asked")));
}

TEST_F(HttpTransport, IsRefusedWhereATokenWouldBeReadable) {
  const auto make = [this](const Config& config) {
    return MakeTransport(config, clock_).status().code();
  };
  EXPECT_EQ(make({.server = "http://a", .token = "t"}), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(make({.server = "https://a", .proxy_url = "socks5://b"}),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(make({.server = "a:6443"}), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(make({.server = "ftp://a"}), absl::StatusCode::kInvalidArgument);
}

TEST_F(HttpTransport, SaysThatNobodyListens) {
  std::string url;
  { url = ScriptedServer().url(); }
  EXPECT_THAT(Get(*To({.server = url})), StatusIs(kUnavailable, HasSubstr("Connection refused")));
  EXPECT_THAT(Get(*To({.server = "http://no-such-host.invalid"})),
              StatusIs(kUnavailable, HasSubstr("looking up no-such-host.invalid")));
}

TEST_F(HttpTransport, GivesUpAServerThatHangs) {
  ScriptedServer server;
  EXPECT_THAT(Get(*To({.server = server.url()}), kLittle),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("GET /x?y=z")));
  ScriptedServer slow;  // a byte of the body, and no more
  slow.Then({{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n1"}, Answer::Then::kHang});
  EXPECT_THAT(Get(*To({.server = slow.url()}), kLittle),
              StatusIs(absl::StatusCode::kDeadlineExceeded, HasSubstr("reading the reply")));
}

TEST_F(HttpTransport, GivesUpATlsServerThatHangsBeforeTls) {
  ScriptedServer server;  // speaks no TLS and waits for the end of a head
  EXPECT_THAT(Get(*To({.server = "https://127.0.0.1:" + std::to_string(server.port())}), kLittle),
              StatusIs(kUnavailable, HasSubstr("TLS: no answer in time")));
}

TEST_F(HttpTransport, DoesNotTakeAPartForTheWhole) {
  for (const char* part :
       {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n1234", "HTTP/1.1 200 OK\r\nContent-Le",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n"}) {
    ScriptedServer server(tls_);
    server.Then({{part}, Answer::Then::kClose});
    EXPECT_THAT(Get(*To(Trusting(server))),
                StatusIs(absl::StatusCode::kUnknown, HasSubstr("closed the connection")))
        << part;
  }
}

TEST_F(HttpTransport, RefusesWhatIsNoHttp) {
  ScriptedServer server;
  server.Then({{"SSH-2.0-OpenSSH_9.2\r\n"}, Answer::Then::kClose});
  EXPECT_EQ(Get(*To({.server = server.url()})).status().code(), absl::StatusCode::kUnknown);
}

TEST_F(HttpTransport, TakesNoLateReplyForThatToTheNextRequest) {
  ScriptedServer server;
  server.Then({{"HTTP/1.1 103 Early Hints\r\n\r\n"}}).Then(Reply(200, "of the second"));
  const auto transport = To({.server = server.url()});
  EXPECT_THAT(Get(*transport), StatusIs(absl::StatusCode::kUnknown, HasSubstr("HTTP 103")));
  ASSERT_OK(Get(*transport));
  EXPECT_EQ(server.requests()[1].connection, 2);
}

TEST_F(HttpTransport, ReadsNoMoreThanItMay) {
  ScriptedServer server;
  server.Then(test::Chunked({std::string(kMaxBytes, 'x'), "y"}))
      .Then({{"HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x')}, Answer::Then::kHang});
  const auto transport = To({.server = server.url()});
  EXPECT_THAT(Get(*transport),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("larger than 1048576")));
  EXPECT_THAT(Get(*transport),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("a head of over 64 KiB")));
}

TEST_F(HttpTransport, EndsWhatAServerSendsWithoutEnd) {
  const std::string much(100'000, 'x');
  const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
  std::string headers = "HTTP/1.1 200 OK\r\n";
  std::string trailers = chunked + "0\r\n";
  for (int i = 0; i < 10'000; ++i) {
    headers += "H" + std::to_string(i) + ": x\r\n";
    trailers += "T" + std::to_string(i) + ": x\r\n";
  }
  for (const std::string& endless : {"HTTP/1.1 200 " + much, headers, chunked + "1;" + much,
                                     chunked + "1;a=\"" + much, trailers}) {
    ScriptedServer server;
    server.Then({{endless}, Answer::Then::kHang});
    EXPECT_THAT(Get(*To({.server = server.url()})),
                StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("over 64 KiB")))
        << endless.substr(0, 80);
  }
}

TEST_F(HttpTransport, TakesNoFloodOfInformationalReplies) {
  std::string flood;
  for (int i = 0; i < 10'000; ++i) flood += "HTTP/1.1 103 Early Hints\r\n\r\n";
  ScriptedServer server;
  server.Then({{flood}, Answer::Then::kHang});
  EXPECT_THAT(Get(*To({.server = server.url()})),
              StatusIs(absl::StatusCode::kUnknown, HasSubstr("HTTP 103 is no reply")));
}

TEST_F(HttpTransport, TakesChunksHoweverTheyAreCut) {
  ScriptedServer server;
  server.Then({{"HTTP/1.1 200 OK\r\nTransfer-", "Encoding: chunked\r\n", "\r\n3", "\r", "\nab",
                "c\r\n", "1;ext=1\r\nd\r\n0\r\nTrailer: x\r\n\r", "\n"}});
  EXPECT_EQ(Get(*To({.server = server.url()})).value().body, "abcd");
}

TEST_F(HttpTransport, FollowsNoRedirect) {
  ScriptedServer server;
  server.Then(Reply(302, "", "Location: http://127.0.0.1:1/\r\n"));
  EXPECT_EQ(Get(*To({.server = server.url()})).value().status, 302);
}

TEST_F(HttpTransport, RepeatsByANewConnectionWhereTheOldOneWasClosedMeanwhile) {
  ScriptedServer server;
  server.Then(Reply(200, "")).Then({{}, Answer::Then::kClose}).Then(Reply(200, "again"));
  const auto transport = To({.server = server.url()});
  ASSERT_OK(Get(*transport));
  EXPECT_EQ(Get(*transport).value().body, "again");
}

TEST_F(HttpTransport, DoesNotRepeatACreateByItself) {
  ScriptedServer server;
  server.Then(Reply(200, "")).Then({{}, Answer::Then::kClose}).Then(Reply(200, "again"));
  const auto transport = To({.server = server.url()});
  ASSERT_OK(Get(*transport));
  EXPECT_EQ(
      transport->Send({.method = "POST", .target = "/"}, kEnough, kMaxBytes, {}).status().code(),
      absl::StatusCode::kUnknown);
  EXPECT_EQ(server.requests().size(), 2U);
}

TEST_F(HttpTransport, UsesAConnectionThatWasIdleForLongNoMore) {
  ScriptedServer server;
  server.Then(Reply(200, "")).Then(Reply(200, ""));
  const auto transport = To({.server = server.url()}, {.idle_limit = std::chrono::seconds(0)});
  ASSERT_OK(Get(*transport));
  ASSERT_OK(Get(*transport));
  EXPECT_EQ(server.requests()[1].connection, 2);
}

TEST_F(HttpTransport, EndsAtOnceWhenStopped) {
  ScriptedServer server(tls_);
  const auto transport = To(Trusting(server));
  std::stop_source stop;
  std::jthread stopper([&] {
    server.AwaitRequests(1);
    stop.request_stop();
  });
  EXPECT_THAT(transport->Send({}, kEnough, kMaxBytes, stop.get_token()),
              StatusIs(absl::StatusCode::kCancelled, "stopped"));
  EXPECT_THAT(transport->Send({}, kEnough, kMaxBytes, stop.get_token()),
              StatusIs(absl::StatusCode::kCancelled, "stopped"));
}

// A stop between two steps of reading was forgotten, and the reply was waited for.
TEST_F(HttpTransport, EndsWhateverItIsAtWhenStopped) {
  ScriptedServer server(tls_);
  const auto transport = To(Trusting(server));
  for (std::size_t i = 1; i <= 200; ++i) {
    std::stop_source stop;
    std::jthread stopper([&] {
      server.AwaitRequests(i);
      stop.request_stop();
    });
    ASSERT_THAT(transport->Send({}, std::chrono::seconds(5), kMaxBytes, stop.get_token()),
                StatusIs(absl::StatusCode::kCancelled, "stopped"))
        << i;
  }
}

TEST_F(HttpTransport, HandsOnAStreamAsItComes) {
  ScriptedServer server(tls_);
  server.Then(test::Chunked({"one", "two"}));
  std::string body;
  bool opened = false;
  ASSERT_OK(To(Trusting(server))
                ->Stream(
                    {}, kEnough, kEnough, [&] { opened = true; },
                    [&](std::string_view bytes) {
                      body += bytes;
                      return absl::OkStatus();
                    },
                    {}));
  EXPECT_EQ(body, "onetwo");
  EXPECT_TRUE(opened);
}

TEST_F(HttpTransport, FindsAStreamThatFellSilent) {
  ScriptedServer server(tls_);
  server.Then(test::Chunked({"one"}, Answer::Then::kHang));
  std::string body;
  const auto end = To(Trusting(server))
                       ->Stream(
                           {}, kEnough, kLittle, [] {},
                           [&](std::string_view bytes) {
                             body += bytes;
                             return absl::OkStatus();
                           },
                           {});
  EXPECT_EQ(end.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(body, "one");
}

// What the kernel was told of the connection to that port.
int TcpOption(int port, int option) {
  for (int socket = 0; socket < 1024; ++socket) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    if (getpeername(socket, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    int value = -1;
    size = sizeof value;
    if (ntohs(peer.sin_port) != port) continue;
    getsockopt(socket, IPPROTO_TCP, option, &value, &size);
    return value;
  }
  return -1;
}

TEST_F(HttpTransport, FindsAPeerThatWentWithoutAWordWithin30Seconds) {
  ScriptedServer server;
  server.Then(Reply(200, ""));
  const auto transport = To({.server = server.url()});
  ASSERT_OK(Get(*transport));  // which leaves the connection open
  const int idle = TcpOption(server.port(), TCP_KEEPIDLE);
  const int interval = TcpOption(server.port(), TCP_KEEPINTVL);
  EXPECT_THAT(idle, testing::AllOf(testing::Ge(10), testing::Le(20)));  // s
  EXPECT_LE(idle + interval * TcpOption(server.port(), TCP_KEEPCNT), 25);
  // It ends at the first probe after it, or is for bytes of ours.
  EXPECT_LE(TcpOption(server.port(), TCP_USER_TIMEOUT), 25'000 /* ms */);
}

TEST_F(HttpTransport, EndsAStreamWithWhatItsReceiverSays) {
  ScriptedServer server;
  server.Then(test::Chunked({"one"}, Answer::Then::kHang));
  EXPECT_THAT(To({.server = server.url()})
                  ->Stream(
                      {}, kEnough, kEnough, [] {},
                      [](std::string_view) { return absl::DataLossError("no more"); }, {}),
              StatusIs(absl::StatusCode::kDataLoss, "no more"));
}

TEST_F(HttpTransport, HasTheBodyOfARefusedStream) {
  ScriptedServer server;
  server.Then(Reply(410, "gone"));
  const auto end = To({.server = server.url()})
                       ->Stream(
                           {}, kEnough, kEnough, [] { FAIL(); },
                           [](std::string_view) { return absl::InternalError("received"); }, {});
  EXPECT_EQ(end.value().status, 410);
  EXPECT_EQ(end.value().body, "gone");
}

}  // namespace
}  // namespace kube
