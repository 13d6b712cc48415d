/** A kernel session for a bench: modules are objects, time is real, and entries are kept in memory. */
import { systemClock } from "../../src/process/system_clock.ts";
import { defaultPolicy } from "../../src/policy/settings.ts";
import { RunLimitGuard } from "../../src/kernel/run_limits.ts";
import type { DraftEntry, Entry, Host } from "../../src/kernel/host.ts";
import { Session } from "../../src/kernel/session/session.ts";
import { MockProvider } from "../../src/sdk/testing/mock_provider.ts";
import type {
  ContextManager,
  Message,
  Module,
  ModuleSpec,
  ModuleType,
  MountPlan,
  Orchestrator,
} from "../../src/sdk/types.ts";

/** Limits that no bench reaches. */
const LIMITS = {
  max_iterations: 1_000_000,
  max_tool_calls: 1_000_000,
  max_total_tokens: 1_000_000_000,
  max_cost_usd: "1000",
  max_duration_s: 600,
};

/** Returns a session with the loop `orchestrator`, and its log entries. */
export function openKernelSession(orchestrator: Orchestrator): { session: Session; entries: Entry[] } {
  const modules = new Map<string, Module>([
    ["bench-loop", { mount: async (coordinator) => await coordinator.mount("orchestrator", orchestrator) }],
    ["bench-context", { mount: async (coordinator) => await coordinator.mount("context", listContext()) }],
    ["bench-provider", {
      mount: async (coordinator) => await coordinator.mount("providers", new MockProvider()),
    }],
  ]);
  const entries: Entry[] = [];
  const host: Host = {
    clock,
    newId: (prefix) => `${prefix}_${crypto.randomUUID()}`,
    open(spec) {
      const module = modules.get(spec.module);
      if (!module) {
        throw new Error(`Cannot open a module: it must be one of the bench's: received "${spec.module}"`);
      }
      return { module, config: spec.config, isolation: "inline", integrity: null };
    },
    record(draft: DraftEntry) {
      entries.push({ ...draft, seq: entries.length + 1, ts: new Date().toISOString(), run_id: "run_bench" });
    },
    ask: () => Promise.resolve(null),
    accept() {},
    warn(code, message) {
      throw new Error(`Cannot measure: the kernel warns: ${code}: ${message}`);
    },
  };
  const plan: MountPlan = {
    session: { orchestrator: spec("bench-loop", "orchestrator"), context: spec("bench-context", "context") },
    providers: [spec("bench-provider", "provider")],
    tools: [],
    hooks: [],
    agents: {},
    limits: {},
  };
  const session = new Session({
    plan,
    host,
    run_limits: new RunLimitGuard({ limits: LIMITS, clock }),
    limits: { ...defaultPolicy().limits, tool_timeout_s: 0 },
    session_id: "ses_bench",
  });
  return { session, entries };
}

function spec(module: string, type: ModuleType): ModuleSpec {
  return { module, type, source: { kind: "builtin" }, config: {}, path: type };
}

function listContext(): ContextManager {
  let messages: Message[] = [];
  return {
    addMessage: (message) => Promise.resolve(void messages.push(message)),
    getMessagesForRequest: () => Promise.resolve([...messages]),
    getMessages: () => Promise.resolve([...messages]),
    setMessages: (replaced) => Promise.resolve(void (messages = [...replaced])),
    clear: () => Promise.resolve(void (messages = [])),
  };
}

const clock = systemClock();
