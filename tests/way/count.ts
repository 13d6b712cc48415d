/**
 * Counts what one request and one event run: own files and functions of them, and calls (V8's precise
 * coverage of a second `POST /v1/runs` with one tool call, so that what is made once is left out). Prints a
 * JSON object `{ request, event }`; with `--list`, each file with its functions and their calls before it.
 */
// deno-lint-ignore-file no-console -- what it counts is what it prints
import inspector from "node:inspector";
import { createPreamp } from "../../src/server/mod.ts";
import type { Coordinator } from "../../src/sdk/mod.ts";

/** Files, functions and calls of a way. */
export interface WayCount {
  files: number;
  functions: number;
  calls: number;
}

interface Coverage {
  result: {
    url: string;
    functions: { functionName: string; ranges: { count: number; startOffset: number }[] }[];
  }[];
}

/** Events of the second of two requests that are compared: what one event runs is their difference. */
const EVENTS = 20;
const ROOT = new URL("../../", import.meta.url).href;

const profiler = new inspector.Session();
profiler.connect();

function send(method: string, parameters: object = {}): Promise<unknown> {
  return new Promise((resolve, reject) => {
    profiler.post(
      method as "Profiler.enable",
      parameters,
      (error: Error | null, value?: unknown) => error ? reject(error) : resolve(value),
    );
  });
}

let events = 0;
const preamp = createPreamp({
  authenticate: null,
  modules: {
    "tool-emits": async (coordinator: Coordinator) => {
      await coordinator.mount("tools", {
        name: "emits",
        description: "emits events",
        input_schema: { type: "object" },
        async execute() {
          for (let at = 0; at < events; at++) {
            await coordinator.hooks.emit("artifact:write", { path: "a", at });
            await new Promise((resolve) => setTimeout(resolve, 3)); // each event in a turn of its own
          }
          return { success: true, output: "done" };
        },
      }, "emits");
    },
  },
});

/** Runs a plan with one call of a tool to its end. */
async function post(tool: string, name: string, input: object, accept: string): Promise<void> {
  const responses = [{ tool_calls: [{ name, arguments: input }] }, { text: "42" }];
  const plan = {
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    providers: [{ module: "provider-mock", config: { responses } }],
    tools: [tool],
  };
  const response = await preamp.fetch(
    new Request("http://localhost/v1/runs", {
      method: "POST",
      headers: { "content-type": "application/json", accept },
      body: JSON.stringify({ prompt: "What is 6 × 7?", plan }),
    }),
  );
  const text = await response.text();
  if (!/"status": ?"completed"/.test(text)) {
    throw new Error(`the run did not end well: ${text.slice(0, 500)}`);
  }
}

const request = () => post("tool-calculator", "calculator", { expression: "6*7" }, "application/json");
const withEvents = (count: number) => {
  events = count;
  return post("tool-emits", "emits", {}, "text/event-stream");
};

/** Returns how often `action` called each function of the program, by `file name offset`. */
async function callsOf(action: () => Promise<void>): Promise<Map<string, number>> {
  await send("Profiler.startPreciseCoverage", { callCount: true, detailed: false });
  await action();
  const { result } = await send("Profiler.takePreciseCoverage") as Coverage;
  await send("Profiler.stopPreciseCoverage");
  const calls = new Map<string, number>();
  for (const { url, functions } of result) {
    if (!url.startsWith(ROOT) || !/\/(src|modules)\//.test(url)) continue;
    for (const { functionName, ranges: [range] } of functions) {
      if (functionName === "" || !range || range.count === 0) continue;
      calls.set(`${url.slice(ROOT.length)} ${functionName} ${range.startOffset}`, range.count);
    }
  }
  return calls;
}

function summaryOf(title: string, calls: ReadonlyMap<string, number>): WayCount {
  const files = new Map<string, string[]>();
  let sum = 0;
  for (const [key, count] of calls) {
    const [file = "", name = ""] = key.split(" ");
    files.set(file, [...files.get(file) ?? [], `${name}×${Math.round(count)}`]);
    sum += count;
  }
  if (Deno.args.includes("--list")) {
    console.log(title);
    for (const [file, names] of [...files].sort()) console.log(`  ${file}: ${names.join(" ")}`);
  }
  return { files: files.size, functions: calls.size, calls: Math.round(sum) };
}

await request();
await withEvents(5);
await send("Profiler.enable");
const of_request = await callsOf(request);
const without = await callsOf(() => withEvents(0));
const of_events = await callsOf(() => withEvents(EVENTS));
const of_event = new Map<string, number>();
for (const [key, count] of of_events) {
  const each = (count - (without.get(key) ?? 0)) / EVENTS;
  if (each >= 0.9) of_event.set(key, each);
}
console.log(JSON.stringify({
  request: summaryOf("one request", of_request),
  event: summaryOf("one event", of_event),
}));
await preamp.close();
Deno.exit(0);
