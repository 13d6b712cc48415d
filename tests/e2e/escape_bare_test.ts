/**
 * The control of the escape suite: each hostile module does its harm when nothing is around it, so that what
 * the sandbox stops (`escape_test.ts`) is an attack and not a typing error.
 */
import { ESCAPE_KINDS, type EscapeKind } from "./escape_kinds.ts";
import { type EscapeSite, openEscapeSite, targetOf } from "./escape_site.ts";
import { HANGS_MS } from "../support/clock.ts";
import { residentBytes } from "./processes.ts";
import { assert, assertEquals } from "../assert.ts";
import { type BareReport, REPORT } from "./escape_bare.ts";

/** Attacks at once: each has a process. */
const AT_ONCE = 5;
/** Milliseconds after which an attack that should hang does; all others are given the time they need. */
const SEEN_MS = 700;
/**
 * Milliseconds that a door is given: one that opens has as long as a busy machine needs, one that may stay
 * shut has not.
 */
const OPENS_MS = 25_000;
const STAYS_SHUT_MS = 3_000;
/** Bytes of resident memory beyond which an attack grows. A process that did nothing has about 70 MB. */
const GROWN_BYTES = 400_000_000;
/** What counts as speaking: more than this often, or this much. */
const SPEAKS_SIZE = 64 * 1024;

interface Outcome {
  came_to: EscapeKind["bare"];
  report: BareReport | undefined;
  stderr: string;
}

/** Runs an attack with every permission and returns its effect. */
async function runBare(kind: EscapeKind, site: EscapeSite): Promise<Outcome> {
  const url = new URL(`../fixtures/hostile/${kind.file}.ts`, import.meta.url).href;
  const patience_ms = kind.bare_shut ? STAYS_SHUT_MS : OPENS_MS;
  const target = { ...targetOf(site, kind), patience_ms };
  const inputs = kind.inputs ?? [{}];
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--quiet",
      "--no-prompt",
      "--no-check",
      "--no-lock",
      "--allow-all",
      "--unstable-kv",
      "--unstable-net",
      "--unstable-worker-options",
      new URL("escape_bare.ts", import.meta.url).pathname,
      url,
      kind.as,
      JSON.stringify(target),
      JSON.stringify(inputs),
    ],
    cwd: site.scratch,
    env: { [site.secret_env]: site.secret, TMPDIR: site.writable, DENO_DIR: denoDir(), NO_COLOR: "1" },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  let out = 0;
  let tail = "";
  const reading = (async () => {
    for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) {
      out += part.length;
      tail = (tail + part).slice(-20_000);
    }
  })();
  let stderr = "";
  const complaining = (async () => {
    for await (const part of child.stderr.pipeThrough(new TextDecoderStream())) {
      stderr = (stderr + part).slice(-2000);
    }
  })();
  let watched: Outcome["came_to"] | undefined;
  const watch = new AbortController();
  const watching = watchProcess(child.pid, kind, () => out, watch.signal).then((seen) => {
    if (seen === undefined) return;
    watched = seen;
    kill(child);
  });
  const [{ code }] = await Promise.all([child.status, reading, complaining]);
  watch.abort();
  await watching;
  const line = tail.split("\n").find((text) => text.startsWith(REPORT));
  const report = line === undefined ? undefined : JSON.parse(line.slice(REPORT.length)) as BareReport;
  const spoke = out > SPEAKS_SIZE ||
    (report !== undefined && (report.said_size > SPEAKS_SIZE || report.size > SPEAKS_SIZE));
  const came_to = watched ??
    (report === undefined ? "dies" : report.outcome === "throws" ? "throws" : spoke ? "speaks" : "answers");
  return {
    came_to: watched === "hangs" && spoke ? "speaks" : came_to,
    report,
    stderr: `exit code ${code}\n${stderr}`,
  };
}

/** Resolves to the effect of a process that has not ended; undefined after it was stopped. */
async function watchProcess(
  pid: number,
  kind: EscapeKind,
  written: () => number,
  signal: AbortSignal,
): Promise<"hangs" | "grows" | "speaks" | undefined> {
  const patience = kind.bare === "hangs" ? SEEN_MS : HANGS_MS;
  const started = performance.now();
  while (!signal.aborted) {
    const bytes = await residentBytes(pid);
    if (bytes === undefined) return undefined; // it has ended
    if (bytes > GROWN_BYTES && kind.bare === "grows") return "grows";
    if (written() > SPEAKS_SIZE && kind.bare === "speaks") return "speaks"; // it may never end
    if (performance.now() - started > patience) return "hangs";
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return undefined;
}

function kill(child: Deno.ChildProcess): void {
  try {
    child.kill("SIGKILL");
  } catch (error) {
    if (!(error instanceof TypeError)) throw error; // it has ended
  }
}

function denoDir(): string {
  return Deno.env.get("DENO_DIR") ?? `${Deno.env.get("HOME")}/.cache/deno`;
}

/** Asserts that the attack did what its row says. */
function assertBare(kind: EscapeKind, { came_to, report, stderr }: Outcome): void {
  if (kind.bare !== "opens") {
    // said little, but said something it should not have: counted by the coordinator
    const spoke = came_to === "answers" && kind.bare === "speaks" && (report?.said ?? 0) > 0;
    assertEquals(spoke ? "speaks" : came_to, kind.bare, `${kind.name}: ${JSON.stringify(report)}\n${stderr}`);
    return;
  }
  assert(report !== undefined, `${kind.name}: ${stderr}`);
  const shut = Object.entries(report.doors).filter(([name, text]) =>
    !text.startsWith("got: ") && !kind.bare_shut?.includes(name)
  );
  assertEquals(shut, [], kind.name);
  assert(Object.values(report.doors).some((text) => text.startsWith("got: ")), `${kind.name} opened no door`);
}

for (
  const [files, name] of [
    [/^(time|memory|exits)$/, "time, memory and processes"],
    [/^(escalation|files|network|spy)$/, "permissions and secrets"],
    [/^(frames|floods|results|globals)$/, "messages and results"],
    [
      /^(lies|top_.*|no_mount|static_.*|hooks|providers|contexts|orchestrators)$/,
      "modules that lie about themselves",
    ],
  ] as const
) {
  const title = `hostile modules: attacks on ${name} succeed when nothing is around them`;
  Deno.test(title, { ignore: Deno.env.has("PROGRAM_UNDER_TEST") }, async () => { // they are the same beside any program
    const kinds = ESCAPE_KINDS.filter(({ file }) => files.test(file));
    assert(kinds.length > 0);
    const failures: string[] = [];
    await Promise.all(Array.from({ length: AT_ONCE }, async () => {
      for (let kind = kinds.shift(); kind; kind = kinds.shift()) {
        try {
          await using site = await openEscapeSite(); // of its own: attackers spoil what they can
          assertBare(kind, await runBare(kind, site));
        } catch (error) {
          failures.push(error instanceof Error ? error.message : String(error));
        }
      }
    }));
    assertEquals(failures, []);
  });
}

Deno.test("hostile modules: every row of the table has a unique name", () => {
  const names = ESCAPE_KINDS.map(({ name }) => name);
  assertEquals(names.length, new Set(names).size);
});
