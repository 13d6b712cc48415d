/**
 * A hostile module with nothing around it: a process with every permission, a coordinator that counts. Says
 * on its last line what came of the attack; `escape_bare_test.ts` starts it and watches. Arguments: the
 * module's URL, `as`, config, input.
 */
import type { JsonObject } from "../../src/sdk/types.ts";

/** The last line of the output: what came of the attack. */
export interface BareReport {
  outcome: "answers" | "throws";
  /** Characters of the answer as JSON, or -1 when it has no JSON. */
  size: number;
  /** Door → what became of it, when the answer is of that kind. */
  doors: Record<string, string>;
  /** How often the module spoke to its coordinator. */
  said: number;
  /** Characters of what it said, as far as they can be counted. */
  said_size: number;
}

/** Starts the last line. */
export const REPORT = "BARE REPORT ";

type Callable = (...args: unknown[]) => unknown;

let said = 0;
let said_size = 0;

/** Counts a call and the text in its arguments. */
function say(...args: unknown[]): void {
  said++;
  for (const value of args) {
    try {
      said_size += typeof value === "string" ? value.length : JSON.stringify(value)?.length ?? 0;
    } catch {
      said_size++; // a cycle
    }
  }
}

const mounted = new Map<string, JsonObject>();
const handlers: { event: string; handler: Callable }[] = [];
const calculator = {
  name: "calculator",
  execute: (...args: unknown[]) => Promise.resolve(void say(...args)),
};

const coordinator = {
  session_id: "ses_bare",
  parent_id: null,
  config: {},
  session_state: {},
  tools: { calculator },
  providers: {},
  orchestrator: null,
  context: null,
  hooks: {
    register: (event: string, handler: Callable) => {
      say(event);
      handlers.push({ event, handler });
      return () => {};
    },
    emit: async (event: string, data: unknown) => {
      say(event, data);
      for (const one of handlers) if (one.event === event) await one.handler(event, data);
      return { action: "continue", data };
    },
  },
  mount: (point: string, module: JsonObject, name?: unknown) => {
    say(point, name);
    if (!mounted.has(point)) mounted.set(point, module);
    return Promise.resolve();
  },
  unmount: (...args: unknown[]) => Promise.resolve(say(...args)),
  get: () => null,
  newId: (prefix: string) => `${prefix}_1`,
  registerCleanup: say,
  registerCapability: say,
  getCapability: () => null,
  registerContributor: say,
  requestCancel: say,
  toDict: () => ({}),
};

const DRIVES: Readonly<Record<string, (input: JsonObject) => unknown>> = {
  tool: (input) => {
    const tool = mounted.get("tools");
    const call = {
      id: "call_1",
      session_id: "ses_bare",
      signal: new AbortController().signal,
      progress: say,
    };
    return (tool?.execute as Callable | undefined)?.(input, call);
  },
  hook: async () => {
    const results: unknown[] = [];
    for (const { event, handler } of [...handlers]) {
      results.push(await handler(event, { tool_name: "attack", tool_input: {} }));
    }
    return results;
  },
  provider: () =>
    (mounted.get("providers")?.complete as Callable)({ messages: [] }, {
      onDelta: (delta: unknown) => say(delta),
    }),
  context: () => (mounted.get("context")?.getMessagesForRequest as Callable)(),
  orchestrator: () => {
    const provider = {
      complete: () => new Promise((resolve) => setTimeout(() => resolve(void say()), 1)),
    };
    return (mounted.get("orchestrator")?.execute as Callable)(
      "",
      {},
      { provider },
      { calculator },
      coordinator.hooks,
    );
  },
};

/** Imports, mounts, drives and cleans up, as a session does. */
async function attack(): Promise<unknown> {
  const [url = "", as = "tool", config = "{}", inputs = "[]"] = Deno.args;
  const module = await import(url) as Record<string, Callable>;
  if (module.mount === undefined) throw new TypeError("there is no mount");
  const cleanup = await module.mount(coordinator, JSON.parse(config));
  await module.onSessionReady?.(coordinator);
  let answer: unknown = cleanup;
  for (const input of JSON.parse(inputs) as JsonObject[]) {
    answer = await DRIVES[as]?.(input);
    await new Promise((resolve) => setTimeout(resolve, 100)); // what it left behind has its time
  }
  if (typeof cleanup === "function") await cleanup();
  return answer;
}

/** Returns the accesses that an answer lists. */
function doorsOf(answer: unknown): Record<string, string> {
  const doors: Record<string, string> = {};
  if (typeof answer !== "object" || answer === null || answer instanceof Uint8Array) return doors;
  for (const [name, value] of Object.entries(answer).slice(0, 100)) {
    if (typeof value === "string" && /^(got|refused): /.test(value)) doors[name] = value;
  }
  return doors;
}

if (import.meta.main) {
  // taken before the module runs: it may break them
  const { stringify } = JSON;
  const { writeSync } = Deno.stdout;
  const exit = Deno.exit;
  setInterval(() => {}, 60_000); // what waits for ever waits: a server's process would be there too
  const encoder = new TextEncoder();
  const encode = encoder.encode.bind(encoder);
  const report: BareReport = { outcome: "answers", size: -1, doors: {}, said: 0, said_size: 0 };
  try {
    const answer = await attack();
    try {
      report.size = answer instanceof Uint8Array ? answer.length : stringify(answer).length;
      report.doors = doorsOf(answer);
    } catch {
      // no JSON: that is the attack
    }
  } catch {
    report.outcome = "throws";
  }
  report.said = said;
  report.said_size = said_size;
  writeSync.call(Deno.stdout, encode(`\n${REPORT}${stringify(report)}\n`));
  exit(0);
}
