// Real inotify on real folders. Wait returns at once if there is a hint, so that nothing here
// sleeps; what must not be a hint is followed by something that is one.
#include "agent/notice.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <memory>
#include <thread>

#include "test/support/files.h"
#include "test/support/status.h"
#include "test/support/temp_tree.h"

namespace agent {
namespace {

constexpr char kSlice[] = "sys/fs/cgroup/kubepods.slice";

class NoticeTest : public testing::Test {
 protected:
  NoticeTest() {
    tree_.Folder("var/lib/kubelet/device-plugins")
        .Folder("var/lib/kubelet/pod-resources")
        .Folder("var/log/pods")
        .Put("etc/kubernetes/kubelet.conf", "")
        .Folder("etc/kubernetes/drop-ins")
        .Folder(kSlice);
    places_ = {.kubelet_dir = "/var/lib/kubelet",
               .pod_logs_dir = "/var/log/pods",
               .config = {"/etc/kubernetes/drop-ins", "/etc/kubernetes/kubelet.conf"},
               .cgroups = {"sys/fs/cgroup", kSlice}};
  }

  void Open() {
    absl::StatusOr<std::unique_ptr<Notice>> notice = Notice::Open(tree_.Open());
    ASSERT_OK(notice);
    notice_ = *std::move(notice);
    notice_->Watch(places_);
    EXPECT_TRUE(Now().any()) << "what happened before is not known";
    EXPECT_EQ(Now(), Hints());
  }
  // What there is by now.
  Hints Now() { return notice_->Wait(base::Instant::min(), {}); }
  // The next hint, of whatever is still to come.
  Hints Next() { return notice_->Wait(base::Instant::clock::now() + std::chrono::minutes(1), {}); }

  void Rename(const std::string& from, const std::string& to) {
    std::filesystem::rename(tree_.Path(from), tree_.Path(to));
  }

  test::TempTree tree_;
  Places places_;
  std::unique_ptr<Notice> notice_;
};

constexpr Hints kKubelet{.kubelet = true};
constexpr Hints kConfig{.config = true};
constexpr Hints kPods{.pods = true};
constexpr Hints kCpusets{.cpusets = true};
constexpr Hints kAnything{.anything = true};

TEST_F(NoticeTest, SeesEachStateFileThatIsReplacedOrWritten) {
  Open();
  for (const char* file : {"cpu_manager_state", "memory_manager_state", "dra_manager_state",
                           "device-plugins/kubelet_internal_checkpoint"}) {
    const std::string path = std::string("var/lib/kubelet/") + file;
    tree_.Put("elsewhere", "{}");
    Rename("elsewhere", path);
    EXPECT_EQ(Now(), kKubelet) << path;
    tree_.Put(path, "{}");
    EXPECT_EQ(Now(), kKubelet) << path;
  }
}

TEST_F(NoticeTest, SeesSocketsComeAndGo) {
  Open();
  for (const char* socket : {"pod-resources/kubelet.sock", "device-plugins/nvidia-gpu.sock"}) {
    tree_.Put(std::string("var/lib/kubelet/") + socket, "");
    EXPECT_EQ(Now(), kKubelet) << socket;
    tree_.Remove(std::string("var/lib/kubelet/") + socket);
    EXPECT_EQ(Now(), kKubelet) << socket;
  }
}

TEST_F(NoticeTest, SeesPodLogsAndConfigurationChange) {
  Open();
  tree_.Folder("var/log/pods/ml_llm-0_0c1e");
  EXPECT_EQ(Now(), kKubelet);
  tree_.Put("etc/kubernetes/kubelet.conf", "kind: KubeletConfiguration\n");
  EXPECT_EQ(Now(), kConfig);
  tree_.Put("etc/kubernetes/drop-ins/10-numa.conf", "");
  EXPECT_EQ(Now(), kConfig);
}

TEST_F(NoticeTest, SeesCgroupsOfPodsAndContainersAndWhoWritesTheirCpusets) {
  const std::string pod = std::string(kSlice) + "/kubepods-pod0c1e.slice";
  const std::string container = pod + "/cri-containerd-" + std::string(64, 'a') + ".scope";
  Open();
  tree_.Folder(pod);
  EXPECT_EQ(Now(), kPods);
  places_.cgroups.push_back(pod);
  notice_->Watch(places_);
  EXPECT_EQ(Now(), kCpusets) << "what happened in it before it was watched";
  tree_.Folder(container);
  EXPECT_EQ(Now(), kPods);
  places_.cgroups.push_back(container);
  notice_->Watch(places_);
  EXPECT_EQ(Now(), kCpusets);
  tree_.Put(container + "/cpuset.cpus", "1-2");
  EXPECT_EQ(Now(), kCpusets);
  tree_.Remove(container);
  EXPECT_EQ(Now(), kPods);
}

TEST_F(NoticeTest, WatchesACgroupAgainThatWasMadeAnewUnderItsName) {
  const std::string pod = std::string(kSlice) + "/kubepods-pod0c1e.slice";
  tree_.Folder(pod);
  places_.cgroups.push_back(pod);
  Open();
  tree_.Remove(pod);
  tree_.Folder(pod);
  EXPECT_EQ(Now(), kPods);
  notice_->Watch(places_);  // the same as before
  EXPECT_EQ(Now(), kCpusets) << "what happened in it before it was watched";
  tree_.Folder(pod + "/cri-containerd-" + std::string(64, 'a') + ".scope");
  EXPECT_EQ(Now(), kPods);
}

TEST_F(NoticeTest, KnowsAfterAWaitStillThatACgroupIsNotWatched) {
  Open();
  EXPECT_TRUE(notice_->Complete());
  tree_.Put("sys/fs/cgroup/no-folder", "");  // it is there, and the kernel grants no watch of it
  places_.cgroups.push_back("sys/fs/cgroup/no-folder");
  notice_->Watch(places_);
  EXPECT_FALSE(notice_->Complete());
  Now();
  EXPECT_FALSE(notice_->Complete());
}

TEST_F(NoticeTest, OverlooksWhatIsNobodysBusiness) {
  const std::string container = std::string(kSlice) + "/" + std::string(64, 'b');
  tree_.Folder(container);
  places_.cgroups.push_back(container);
  Open();
  tree_.Put("var/lib/kubelet/cpu_manager_state.tmp", "")
      .Folder("var/lib/kubelet/pods/0c1e")
      .Put("etc/kubernetes/scheduler.conf", "")
      .Put(container + "/memory.max", "1")
      .Folder(container + "/its-own-affair");
  EXPECT_EQ(Now(), Hints());
}

TEST_F(NoticeTest, WaitsForFoldersThatComeLate) {
  tree_.Remove("var");
  Open();
  EXPECT_FALSE(notice_->Complete());
  tree_.Folder("var");
  tree_.Folder("var/lib/kubelet/pod-resources");
  EXPECT_EQ(Next(), kAnything);
  tree_.Put("var/lib/kubelet/pod-resources/kubelet.sock", "");
  EXPECT_TRUE(Next().kubelet);
  tree_.Folder("var/lib/kubelet/device-plugins").Folder("var/log/pods");
  EXPECT_TRUE(Next().anything);
  EXPECT_EQ(Now(), Hints());
  EXPECT_TRUE(notice_->Complete());
  tree_.Put("var/lib/kubelet/device-plugins/kubelet_internal_checkpoint", "{}");
  EXPECT_EQ(Now(), kKubelet);
}

TEST_F(NoticeTest, FollowsAFolderThatIsReplaced) {
  Open();
  Rename("var/lib/kubelet", "var/lib/kubelet.old");
  tree_.Folder("var/lib/kubelet/device-plugins").Folder("var/lib/kubelet/pod-resources");
  EXPECT_TRUE(Now().anything);
  EXPECT_EQ(Now(), Hints());
  tree_.Put("var/lib/kubelet/cpu_manager_state", "{}");
  EXPECT_EQ(Now(), kKubelet);
  tree_.Put("var/lib/kubelet.old/cpu_manager_state", "{}");
  EXPECT_EQ(Now(), Hints()) << "the old one is no longer watched";
}

// A folder above was renamed, or something was mounted: no event tells.
TEST_F(NoticeTest, FindsAFolderReplacedUnseenAtTheEndOfAWait) {
  Open();
  Rename("var", "var.old");
  tree_.Folder("var/lib/kubelet/device-plugins")
      .Folder("var/lib/kubelet/pod-resources")
      .Folder("var/log/pods");
  EXPECT_EQ(Now(), kAnything);
  tree_.Put("var/lib/kubelet/memory_manager_state", "{}");
  EXPECT_EQ(Now(), kKubelet);
}

TEST_F(NoticeTest, FollowsLinksInsideTheTree) {
  tree_.Remove("var/lib/kubelet");
  tree_.Folder("data/kubelet/device-plugins").Folder("data/kubelet/pod-resources");
  tree_.Link("var/lib/kubelet", "/data/kubelet");
  Open();
  EXPECT_TRUE(notice_->Complete());
  tree_.Put("data/kubelet/cpu_manager_state", "{}");
  EXPECT_EQ(Now(), kKubelet);
}

TEST_F(NoticeTest, SaysThatAnythingMayHaveChangedWhenTheQueueOverflowed) {
  Open();
  const std::string limit = test::Slurp("/proc/sys/fs/inotify/max_queued_events");
  const int events = std::atoi(limit.c_str());
  ASSERT_GT(events, 0);
  if (events > 100'000) GTEST_SKIP() << "a queue of " << limit << " events takes too long to fill";
  for (int i = 0; i <= events / 2; ++i) {
    const std::string path = tree_.Path(fmt::format("var/lib/kubelet/x{}", i));
    std::filesystem::create_directory(path);
    std::filesystem::remove(path);
  }
  const Hints hints = Now();
  EXPECT_TRUE(hints.anything);
  EXPECT_TRUE(hints.lost);
  EXPECT_EQ(Now(), Hints());
  tree_.Put("var/lib/kubelet/cpu_manager_state", "{}");
  EXPECT_EQ(Now(), kKubelet);
}

// As where other programs have taken all instances that a user may have.
TEST_F(NoticeTest, OnlyWaitsAsLongAsNoInotifyIsGrantedAndWatchesAsSoonAsItIs) {
  base::FileTree files = tree_.Open();
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(STDIN_FILENO);
  close(next);
  rlimit one_more = before;
  one_more.rlim_cur = static_cast<rlim_t>(next) + 1;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &one_more), 0);
  absl::StatusOr<std::unique_ptr<Notice>> notice = Notice::Open(std::move(files));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_OK(notice);
  EXPECT_FALSE((*notice)->HasInotify());
  (*notice)->Poke();
  EXPECT_EQ((*notice)->Wait(base::Instant::clock::now() + std::chrono::minutes(1), {}), kAnything);
  EXPECT_FALSE((*notice)->Complete());

  (*notice)->Watch(places_);
  EXPECT_TRUE((*notice)->HasInotify());
  EXPECT_TRUE((*notice)->Complete());
  notice_ = *std::move(notice);
  EXPECT_TRUE(Now().any()) << "what happened before is not known";
  tree_.Put("var/lib/kubelet/cpu_manager_state", "{}");
  EXPECT_EQ(Next(), kKubelet);
}

TEST_F(NoticeTest, IsWokenByAPokeFromAnotherThread) {
  Open();
  std::thread other([this] { notice_->Poke(); });
  EXPECT_EQ(Next(), kAnything);
  other.join();
}

TEST_F(NoticeTest, ReturnsWithoutAHintWhenToldToStop) {
  Open();
  std::stop_source stop;
  std::thread other([&stop] { stop.request_stop(); });
  EXPECT_EQ(notice_->Wait(base::Instant::max(), stop.get_token()), Hints());
  other.join();
  EXPECT_EQ(notice_->Wait(base::Instant::max(), stop.get_token()), Hints()) << "and ever after";
}

TEST_F(NoticeTest, WaitsNoLongerThanItIsTold) {
  Open();
  const auto until = base::Instant::clock::now() + std::chrono::milliseconds(20);
  EXPECT_EQ(notice_->Wait(until, {}), Hints());
  EXPECT_GE(base::Instant::clock::now(), until);
}

}  // namespace
}  // namespace agent
