#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/recording.h"
#include "scheduler/admission/admit.h"
#include "test/support/shared.h"
#include "test/support/status.h"

namespace scheduler::admission {
namespace {

struct Tally { int events=0, verdicts=0, reasons=0, affinities=0, cpus=0, memory=0, devices=0, shared=0, shared_n=0, printed=0; };

void Replay(const cli::Recording& r, Tally& t, int line) {
  auto st = StateFrom(r.node, r.device_order);
  ASSERT_OK(st);
  NodeState state = *std::move(st);
  int n=0;
  for (const auto& e : r.events) {
    ++n;
    if (e.kind == cli::RecordedEvent::Kind::kRemove) { Remove(state, e.pod.uid); continue; }
    if (e.kind == cli::RecordedEvent::Kind::kDeviceHealth) { SetDevices(state, e.resource, e.unhealthy); continue; }
    Verdict v = Admit(state, MakeRequest(e.pod));
    ++t.events;
    bool ok = v.admitted() == e.verdict.admitted;
    t.verdicts += ok;
    bool rok = std::string(KubeletReason(v)) == e.verdict.reason;
    t.reasons += rok;
    bool aok = true, cok=true, mok=true, dok=true;
    std::string d;
    if (ok && v.admitted()) {
      for (size_t i=0;i<v.containers.size() && i < e.verdict.containers.size();++i) {
        auto& a=v.containers[i]; auto& b=e.verdict.containers[i];
        std::optional<base::NumaMask> m; if (a.has_affinity) m=state.machine->ToIds(a.affinity);
        if (m!=b.affinity || a.preferred!=b.preferred) { aok=false; d+=" aff "+(m?m->ToString():"nil")+" vs "+(b.affinity?b.affinity->ToString():"nil"); }
        base::CpuSet cs; a.holding.cpus.ForEach([&](int c){cs.Insert(c);});
        if (cs!=b.cpus) { cok=false; d+=" cpus "+cs.ToString()+" vs "+b.cpus.ToString(); }
        std::vector<placement::PlacedMemory> pm; for (auto& bl: a.holding.memory) pm.push_back({state.machine->memory_types[bl.type], bl.bytes, state.machine->ToIds(bl.nodes)});
        if (pm!=b.memory) { mok=false; d+=" mem"; for(auto&x:pm) d+=x.type+std::to_string(x.bytes)+"@"+x.numa_nodes.ToString()+" "; d+="vs "; for(auto&x:b.memory) d+=x.type+std::to_string(x.bytes)+"@"+x.numa_nodes.ToString()+" "; }
        std::map<std::string,std::vector<std::string>> ds; for (auto& [res,bits]: a.holding.devices) { auto& f=state.machine->devices[res]; bits.ForEach([&](int x){ds[f.name].push_back(f.devices[x].id);}); std::sort(ds[f.name].begin(),ds[f.name].end()); }
        if (!e.verdict.ambiguous_devices && ds!=b.devices) { dok=false; d+=" dev"; }
      }
    } else if (ok) {
      std::optional<base::NumaMask> m; if (v.has_affinity) m=state.machine->ToIds(v.affinity);
      if (m!=e.verdict.rejected_affinity || v.preferred!=e.verdict.rejected_preferred) {aok=false; d+=" raff "+(m?m->ToString():"nil")+" vs "+(e.verdict.rejected_affinity?e.verdict.rejected_affinity->ToString():"nil");}
    }
    t.affinities+=aok; t.cpus+=cok; t.memory+=mok; t.devices+=dok;
    if (!(ok&&rok&&aok&&cok&&mok&&dok) && t.printed++ < 25)
      std::printf("line %d event %d family %s policy %s: ours %s theirs %s (%s)%s\n", line, n, r.family.c_str(), r.node.kubelet.topology_policy.c_str(), KubeletReason(v), e.verdict.reason.c_str(), e.verdict.message.c_str(), d.c_str());
    if (!ok) return;
    Commit(e.pod.uid, v, state);
    if (v.admitted()) {
      if (e.verdict.shared_cpus) {
        base::CpuSet cs; Bits b=state.pool.cpus; if (!state.machine->settings.strict_cpu_reservation) b|=state.machine->reserved_cpus; b.ForEach([&](int c){cs.Insert(c);});
        ++t.shared_n; t.shared += cs==*e.verdict.shared_cpus;
      }
      if (!e.not_started) Started(state, e.pod);
    }
  }
}

TEST(Recorded, Public) {
  SKIP_WITHOUT_SHARED();
  for (const char* f : {"named","public","live"}) {
    Tally t;
    ASSERT_OK(cli::ForEachLine(*test::SharedFolder()+"/admission/"+f+".jsonl.gz", [&](int line, const std::string& s) -> absl::Status {
      auto r = cli::ParseRecording(s);
      if (!r.ok()) return r.status();
      Replay(*r, t, line);
      return absl::OkStatus();
    }));
    std::printf("%s events %d verdicts %d reasons %d aff %d cpus %d mem %d dev %d shared %d/%d\n", f, t.events,t.verdicts,t.reasons,t.affinities,t.cpus,t.memory,t.devices,t.shared,t.shared_n);
  }
}

}  // namespace
}  // namespace scheduler::admission
