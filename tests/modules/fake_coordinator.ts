/** A small coordinator for module tests: a real handler chain, a clock that is set by hand, and what was mounted. */
import type { Clock, Coordinator, Emission, HookOptions, JsonObject, Tool } from "preamp";
import { type ChainHandler, runChain } from "../../src/sdk/hook_chain.ts";

interface Registered extends ChainHandler {
  event: string;
  priority: number;
}

/** What a test looks at and turns. */
export interface Fake {
  coordinator: Coordinator;
  /** Milliseconds, both of the wall clock and of the monotonic one. */
  time: { now: number };
  tools: Record<string, Tool>;
  state: JsonObject;
  handlers: Registered[];
  /** Every event that was emitted, in order. */
  emitted: { event: string; data: JsonObject }[];
  emit(event: string, data?: JsonObject): Promise<Emission>;
}

/** Returns a fresh fake; `plan` is what `coordinator.config` shows. */
export function fakeCoordinator(plan: JsonObject = {}): Fake {
  const time = { now: 1_000_000 };
  const tools: Record<string, Tool> = {};
  const state: JsonObject = {};
  const handlers: Registered[] = [];
  const emitted: Fake["emitted"] = [];
  const capabilities = new Map<string, unknown>();
  const contributors: { channel: string; callback: () => unknown }[] = [];
  const clock: Clock = { now: () => time.now, monotonic: () => time.now, after: () => Promise.resolve() };

  const emit = (event: string, data: JsonObject = {}) => {
    emitted.push({ event, data });
    const payload = { session_id: "ses_1", timestamp: "2026-01-02T03:04:05.006Z", ...data };
    const chain = handlers.filter((each) => each.event === event);
    return runChain(chain.toSorted((a, b) => a.priority - b.priority), event, payload);
  };
  const coordinator = {
    session_id: "ses_1",
    config: plan,
    session_state: state,
    clock,
    tools,
    hooks: {
      register(event: string, handler: ChainHandler["handler"], options: HookOptions = {}) {
        const registered: Registered = {
          event,
          handler,
          priority: options.priority ?? 0,
          name: options.name ?? "handler",
          observes: false,
          fail_closed: options.fail_closed ?? true,
          timeout_ms: 0,
        };
        handlers.push(registered);
        return () => handlers.splice(handlers.indexOf(registered), 1);
      },
      emit,
    },
    mount(point: string, module: object, name?: string | { name?: string }) {
      const as = typeof name === "string" ? name : name?.name;
      if (point !== "tools" || as === undefined) throw new Error(`Cannot mount at "${point}" in this fake`);
      tools[as] = module as Tool;
      return Promise.resolve();
    },
    registerCapability: (name: string, value: unknown) => void capabilities.set(name, value),
    getCapability: (name: string) => capabilities.get(name) ?? null,
    registerContributor: (channel: string, _name: string, callback: () => unknown) =>
      void contributors.push({ channel, callback }),
    collectContributions: (channel: string) =>
      Promise.all(contributors.filter((each) => each.channel === channel).map((each) => each.callback())),
  };
  // The fake has what these modules use; anything else would be undefined and fail the test.
  return { coordinator: coordinator as unknown as Coordinator, time, tools, state, handlers, emitted, emit };
}

/** Returns the result of one tool call, as plain data. */
export async function call(fake: Fake, tool: string, input: JsonObject): Promise<JsonObject> {
  return await fake.tools[tool]?.execute(input) as JsonObject;
}
