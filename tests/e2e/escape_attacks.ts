/** Runs attacks as runs over HTTP against one server, and asserts what must be true after them. */
import { assert, assertEquals } from "../assert.ts";
import { assertSeen, assertUnharmed, type Attacked, callsOf } from "./escape_checks.ts";
import { ESCAPE_KINDS, type EscapeKind } from "./escape_kinds.ts";
import { escapePlan } from "./escape_plans.ts";
import { type EscapeServer, keyFor } from "./escape_server.ts";
import type { Json } from "./program.ts";
import { aliveOf, descendantsOf, descriptorsOf } from "./processes.ts";
import { readSse } from "../support/sse.ts";

/**
 * Of spare children that wait at one time and not at another: three pipes and the process itself, of three.
 */
const SPARE_FILES = 12;

/** Runs one attack, in the plan of a caller. */
async function attack(suite: EscapeServer, kind: EscapeKind): Promise<Attacked> {
  const { server, site, modules } = suite;
  const plan = escapePlan({ kind, site, modules: `${modules.url}hostile/`, server_pid: server.pid });
  const authorization = `Bearer ${keyFor(kind)}`;
  const { status, body: run } = await server.post("/v1/runs", { prompt: "Attack.", plan }, {
    prefer: "wait",
    authorization,
  });
  if (status !== 200) return { status, run, events: [], text: "" };
  const response = await server.fetch(run.events_url, {
    headers: { accept: "text/event-stream", authorization },
  });
  const text = await response.text();
  assertEquals(response.status, 200, text.slice(0, 500));
  const events: Json[] = [];
  for await (const { data } of readSse(new Response(text))) events.push(JSON.parse(data));
  return { status, run, events, text };
}

/** Runs attacks side by side; resolves to what went wrong, as lines. */
export async function attackAll(
  suite: EscapeServer,
  all: readonly EscapeKind[],
  at_once: number,
): Promise<string[]> {
  const queue = [...all];
  const failures: string[] = [];
  await Promise.all(Array.from({ length: at_once }, async () => {
    for (let next = queue.shift(); next; next = queue.shift()) {
      try {
        const attacked = await attack(suite, next);
        assertSeen(next, attacked);
        assertUnharmed(next, attacked, suite);
      } catch (error) {
        failures.push(`${next.name}: ${error instanceof Error ? error.message : String(error)}`);
      }
    }
  }));
  return failures;
}

/** Returns all kinds, or those of the variable `ESCAPE_KINDS`. */
export function everyKind(): EscapeKind[] {
  const only = Deno.env.get("ESCAPE_KINDS")?.split(","); // to debug single kinds
  return ESCAPE_KINDS.filter(({ name }) => only?.includes(name) ?? true);
}

/** Returns the open files of a process without sockets, which belong to the requests of this test. */
export async function openFiles(pid: number): Promise<string[]> {
  return (await descriptorsOf(pid)).filter((name) => !name.startsWith("socket:"));
}

/** Returns a kind by its name. */
export function kindOf(name: string): EscapeKind {
  const found = ESCAPE_KINDS.find((kind) => kind.name === name);
  if (!found) throw new Error(`There is no kind "${name}"`);
  return found;
}

/** What is the same whatever was attacked: the steps after the attacks. */
export async function assertUntouched(
  t: Deno.TestContext,
  { server, site, bystander_secret }: EscapeServer,
  descriptors: readonly string[],
): Promise<void> {
  await t.step(
    "nothing outside of the grants was touched, and the server is the same process as before",
    async () => {
      assertEquals(await site.changes(), []);
      assertEquals(site.trespasses, []);
      assertEquals((await server.get("/healthz")).status, 200);
      assertEquals(await aliveOf([server.pid]), [server.pid]);
      const log = server.stderr.text;
      assert(!log.includes(site.secret) && !log.includes(bystander_secret), "a secret is in the log");
    },
  );

  await t.step("no descriptor is left", async () => {
    let left = await openFiles(server.pid);
    for (let asked = 0; left.length > descriptors.length + SPARE_FILES && asked < 100; asked++) {
      await new Promise((resolve) => setTimeout(resolve, 50)); // the last children are being reaped
      left = await openFiles(server.pid);
    }
    assert(left.length <= descriptors.length + SPARE_FILES, `before: ${descriptors}, after: ${left}`);
  });

  await t.step("no process is left when the server has ended", async () => {
    const children = await descendantsOf(server.pid);
    server.kill("SIGTERM");
    const { code } = await server.ended;
    assertEquals(code, 0);
    assertEquals(await aliveOf(children), []);
  });
}

/** Asserts that a guest finds nothing of the one before it. */
export async function assertNothingLeft(suite: EscapeServer): Promise<void> {
  await attack(suite, kindOf("pollute"));
  const { events } = await attack(suite, kindOf("look"));
  assertEquals(callsOf(events, "attack").map(({ output }) => output), [{ found: 0 }]);
}
