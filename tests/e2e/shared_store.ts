/**
 * What tests of servers that share a store have in common: plans, requests to any of the servers, waiting for
 * a run.
 */
import { assertEquals } from "../assert.ts";
import { HANGS_MS } from "../support/clock.ts";
import { POSTGRES, startPostgres } from "../support/postgres.ts";
import { readSse } from "../support/sse.ts";
import type { Json, ServerProgram } from "./program.ts";
import { inFolder } from "../support/folder.ts";

/** Environment of servers that share a store: they take the same key. */
export const KEYS = { PREAMP_API_KEYS: "one-key-for-all-servers" };
/** Headers of a request with that key. */
export const AUTHORIZED = { authorization: `Bearer ${KEYS.PREAMP_API_KEYS}` };

/** Returns a plan whose later model calls wait, so that a test may stop the server meanwhile. */
export function planOf(delay_ms: number, tool_calls = 1): Json {
  const call = { tool_calls: [{ name: "calculator", arguments: { expression: "6 * 7" } }] };
  const later = Array.from({ length: tool_calls - 1 }, () => ({ ...call, delay_ms }));
  const responses = [call, ...later, { text: "It is 42.", delay_ms }];
  return {
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    providers: [{ module: "provider-mock", config: { responses } }],
    tools: ["tool-calculator"],
  };
}

/** A plan whose tool call needs an approval. */
export const ASKING = {
  ...planOf(0),
  hooks: [{ module: "hooks-approval", config: { rules: [{ tool: "*", action: "ask" }] } }],
};

/** Sends a request to any of the servers. */
export async function call(
  server: Pick<ServerProgram, "fetch">,
  path: string,
  body?: Json,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: Json }> {
  const response = await server.fetch(path, {
    headers: { ...AUTHORIZED, "content-type": "application/json", ...headers },
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
  });
  return { status: response.status, body: await response.json() as Json };
}

/** Starts a run in the background; resolves to its id. */
export async function begin(server: ServerProgram, plan: Json, more: Json = {}): Promise<string> {
  const { body, status } = await call(server, "/v1/runs", { prompt: "What is 6 × 7?", plan, ...more }, {
    prefer: "respond-async",
  });
  assertEquals(status, 202, JSON.stringify(body));
  return body.id;
}

/** Reads the run until `holds`. @throws {Error} when it never does. */
export async function until(server: ServerProgram, id: string, holds: (run: Json) => boolean): Promise<Json> {
  for (let tries = 0; tries < HANGS_MS / 100; tries++) {
    const { body } = await call(server, `/v1/runs/${id}`);
    if (holds(body)) return body;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`run ${id} does not get there`);
}

/** Thrown where a run has ended before a busy machine had done what was to happen meanwhile. */
class TooShort extends Error {}

/** Calls a part of a test with longer and longer delays of its model calls until its runs are long enough. */
export async function lasting(delay_ms: number, body: (delay_ms: number) => Promise<void>): Promise<void> {
  for (let longer_ms = delay_ms;; longer_ms *= 4) {
    try {
      return await body(longer_ms);
    } catch (error) {
      if (!(error instanceof TooShort) || longer_ms > HANGS_MS) throw error;
    }
  }
}

/** Makes {@link lasting} try again with longer runs if a run has ended. */
export async function mustRun(server: Pick<ServerProgram, "fetch">, id: string): Promise<void> {
  const { body } = await call(server, `/v1/runs/${id}`);
  if (body.ended_at !== null) throw new TooShort(`run ${id} has ended`);
}

/** Collects the names of a run's events, read from this server, until the end of the run. */
export async function eventsOf(
  server: ServerProgram,
  id: string,
): Promise<{ seqs: number[]; names: string[] }> {
  const response = await server.fetch(`/v1/runs/${id}/events`, {
    headers: { ...AUTHORIZED, accept: "text/event-stream" },
  });
  const [seqs, names]: [number[], string[]] = [[], []];
  for await (const { id, event } of readSse(response)) {
    seqs.push(Number(id));
    names.push(event);
    if (event === "run:end") break;
  }
  return { seqs, names };
}

/** Registers a test for SQLite and one for Postgres. `body` receives the flags that name an empty store. */
export function testOnStores(
  title: string,
  body: (flags: string[], t: Deno.TestContext) => Promise<void>,
): void {
  Deno.test(`two servers on one SQLite file: ${title}`, (t) =>
    inFolder((folder) => body(["--store", `sqlite:${folder}/runs.db`], t)));
  Deno.test({
    name: `two servers on one Postgres: ${title}`,
    ignore: POSTGRES === null,
    async fn(t) {
      await using database = await startPostgres();
      await body(["--store", database.url], t);
    },
  });
}
