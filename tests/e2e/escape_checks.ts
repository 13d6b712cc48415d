/** What must be seen of a run that was attacked: by its row of the table, and whatever the row. */
import { assert, assertEquals } from "../assert.ts";
import type { EscapeKind } from "./escape_kinds.ts";
import { LAST_WORD } from "./escape_plans.ts";
import type { EscapeServer } from "./escape_server.ts";
import type { Json } from "./program.ts";

/** Maximum bytes of a run's log under attack: the limits of the plan, and room for the rest. */
const MAX_LOG_BYTES = 16 * 1024 * 1024;

/** These change what is calculated, or who calculates: a plan that names them gets that, with a warning. */
const CALCULATORS_OF_THEIR_OWN: ReadonlySet<string> = new Set(["hook_modify_prototype", "name_collision"]);

/** A run, and everything that was logged of it. */
export interface Attacked {
  readonly status: number;
  readonly run: Json;
  readonly events: Json[];
  /** The log as it came over the wire. */
  readonly text: string;
}

/** What a tool call came to, as the log has it. */
interface CallEnd {
  readonly code: string | null;
  readonly output: unknown;
  readonly text: string;
}

/** Asserts what the row promises. */
export function assertSeen(kind: EscapeKind, attacked: Attacked): void {
  const { seen } = kind;
  const { status, run, events } = attacked;
  if ("refused" in seen) {
    assert(status >= 400 && status < 500, `status ${status}: ${JSON.stringify(run)}`);
    return assertOneOf(run.error?.code, seen.refused);
  }
  assertEquals(status, 200, JSON.stringify(run));
  if ("run" in seen) return assertOneOf(run.status, seen.run);
  const calls = callsOf(events, "attack");
  if ("skipped" in seen) {
    assert(events.some(({ event }) => event === "module:skipped"), "the module was not skipped");
    for (const { code } of calls) assertEquals(code, "tool_not_found");
  } else if ("denied" in seen) {
    const messages = JSON.stringify(messagesOf(events));
    assert(messages.includes("Denied by hook"), `the call was not denied: ${messages.slice(0, 500)}`);
    assertEquals(callsOf(events, "calculator"), []);
  } else if (kind.as === "tool") {
    assert(calls.length > 0, "the tool was not called");
    for (const call of calls) assertCall(kind, call);
  }
}

function assertCall({ seen }: EscapeKind, { code, output, text }: CallEnd): void {
  if ("fails" in seen) return assertOneOf(code, seen.fails, text);
  if ("doors" in seen) {
    assertEquals(code, null, text);
    const doors = Object.entries(output as Record<string, string>);
    assert(doors.length > 0, text);
    const opened = doors.filter(([, result]) => result.startsWith("got: ")).map(([name]) => name);
    if (seen.doors === "open") assertEquals(opened, doors.map(([name]) => name), text);
    else assertEquals(opened.filter((name) => !seen.but?.includes(name)), [], text);
  }
  if ("answers" in seen) assertEquals(code, null, text);
}

function assertOneOf(value: unknown, allowed: readonly string[], text = ""): void {
  assert(allowed.includes(String(value)), `must be ${allowed.join(" or ")}: received ${value} ${text}`);
}

/**
 * Asserts what holds after every attack: the run ended once and in order, nothing leaked, and its neighbours
 * never noticed.
 */
export function assertUnharmed(
  kind: EscapeKind,
  attacked: Attacked,
  suite: EscapeServer,
): void {
  const { run, events, text } = attacked;
  const everything = JSON.stringify(run) + text;
  for (const secret of [suite.site.secret, suite.bystander_secret]) {
    // a link in a granted folder shows what it leads to: that is what the row says
    if (kind.name === "read_links" && secret === suite.site.secret) continue;
    assert(!everything.includes(secret), "a secret was disclosed");
  }
  assertEquals(suite.site.trespasses, []);
  if ("refused" in kind.seen) return;
  assert(text.length < MAX_LOG_BYTES, `the log has ${text.length} bytes`);
  assertEquals(events.map(({ seq }) => seq), events.map((_, at) => at + 1));
  for (const once of ["run:start", "run:end", "session:end", "session:cleanup"]) {
    const count = events.filter(({ event }) => event === once).length;
    assertEquals(`${once}: ${count}`, `${once}: 1`);
  }
  assertEquals(events.at(-1).event, "run:end");
  if (kind.gate) {
    const ran = events.filter(({ event, data }) => event === "tool:post" && data.tool_name === "calculator");
    assertEquals(ran, [], "a call ran that a gate denies");
  }
  if ("run" in kind.seen) return;
  assertEquals([run.status, run.output_text], ["completed", LAST_WORD], JSON.stringify(run.error));
  const skipped = "skipped" in kind.seen;
  const module = `${kind.as}-attack`;
  if (!skipped) assertEquals(run.isolation[module] ?? "process", "process");
  if (!("denied" in kind.seen) && !kind.gate && !CALCULATORS_OF_THEIR_OWN.has(kind.name)) {
    assertEquals(callsOf(events, "calculator").at(-1)?.output, "42");
  }
  if (kind.bystander) {
    assertEquals(callsOf(events, "bystander").map(({ output }) => output), [{
      length: suite.bystander_secret.length,
    }]);
    assertEquals(run.isolation["tool-bystander"], "process");
  }
}

/** Returns what became of the calls of a tool. */
export function callsOf(events: Json[], name: string): CallEnd[] {
  return events.filter(({ event, data }) =>
    (event === "tool:post" || event === "tool:error") && data.tool_name === name
  ).map(({ event, data }) => {
    const text = JSON.stringify(data).slice(0, 1500);
    if (event === "tool:error") return { code: data.error.type, output: null, text };
    const { success, output, error } = data.result;
    return { code: success ? null : error?.type ?? error?.code ?? "failed", output, text };
  });
}

function messagesOf(events: Json[]): Json[] {
  return events.filter(({ event }) => event === "context:message").map(({ data }) => data.message);
}
