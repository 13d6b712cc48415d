/**
 * A store that fails for seconds, again and again, while runs call tools and are streamed: each run
 * completes, each effect happens once, and no stream has a gap.
 */
import pg from "pg";
import type { InProcessModule } from "../../src/app/module_table.ts";
import { parsePolicy } from "../../src/policy/parse_policy.ts";
import { createPreamp } from "../../src/server/mod.ts";
import { openStore } from "../../src/store/open.ts";
import { assert, assertEquals } from "../assert.ts";
import { POSTGRES, startPostgres } from "../support/postgres.ts";
import { mountSmallDisk } from "../support/small_disk.ts";

/** Clients that run one plan after the other. */
const CLIENTS = 6;
const TOOL_CALLS = 3;
/** Runs that end between two failures on average, however busy the machine is. */
const RUNS_BETWEEN = 3;

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

/** Returns a module whose tool counts its executions by run. */
function countingModule(effects: Map<string, number>): InProcessModule {
  return async (coordinator) => {
    await coordinator.mount("tools", {
      name: "effect",
      description: "Does something that must not happen twice.",
      input_schema: { type: "object", properties: { run: { type: "string" } } },
      async execute({ run }: Record<string, unknown>) {
        await pause(30);
        effects.set(String(run), (effects.get(String(run)) ?? 0) + 1);
        return "done" as never;
      },
    });
  };
}

/** What the clients of a server have seen. */
interface Seen {
  /** Runs that were streamed to their end. */
  readonly runs: string[];
  /** Statuses of requests that were refused. */
  readonly refused: Set<number>;
  /** How often the store was away. */
  waits: number;
}

/** Runs plans over a store while `fail` makes it fail `times` times; checks what the clients see. */
async function checkOutages(url: string, times: number, fail: () => Promise<void>): Promise<Seen> {
  const effects = new Map<string, number>();
  const seen: Seen = { runs: [], refused: new Set(), waits: 0 };
  const preamp = createPreamp({
    policy: await parsePolicy("rates: {runs_per_minute: 100000, requests_per_minute: 100000}"),
    modules: { "tool-effect": countingModule(effects) },
    store: await openStore(url),
    plans: null,
    authenticate: null,
    runtime_log: (_level, event) => event === "store_away" && seen.waits++,
  });
  await preamp.runtime.start();
  const stop = new AbortController();
  const clients = Promise.all(Array.from({ length: CLIENTS }, async (_, client) => {
    for (let number = 0; !stop.signal.aborted; number++) {
      await streamOne(preamp.fetch, `${client}-${number}`, seen);
    }
  }));
  const outages = async () => {
    for (let time = 0; time < times; time++) {
      while (seen.runs.length < RUNS_BETWEEN * time) await pause(20);
      await fail();
    }
    stop.abort();
  };
  await Promise.all([clients, outages()]);
  for (const run of seen.runs) assertEquals([run, effects.get(run)], [run, TOOL_CALLS]);
  await preamp.close();
  return seen;
}

/** Runs a plan; sends the request again while it is refused. Checks the stream of the run. */
async function streamOne(fetch: (request: Request) => Promise<Response>, run: string, seen: Seen) {
  const call = { tool_calls: [{ name: "effect", arguments: { run } }] };
  const plan = {
    session: { orchestrator: "loop-streaming", context: "context-simple" },
    providers: [{
      module: "provider-mock",
      config: {
        responses: [...Array(TOOL_CALLS).fill(call), { text: "all done ".repeat(40), delay_ms: 50 }],
      },
    }],
    tools: ["tool-effect"],
  };
  const seqs: number[] = [];
  let ended: string | undefined;
  while (ended === undefined) {
    const response = await fetch(
      new Request("http://localhost/v1/runs", {
        method: "POST",
        headers: {
          "content-type": "application/json",
          "accept": "text/event-stream",
          "idempotency-key": run,
        },
        body: JSON.stringify({ prompt: "go", plan }),
      }),
    );
    const text = await response.text();
    if (response.status !== 200) {
      assert([503, 507].includes(response.status), `${response.status}: ${text}`);
      assert(Number(response.headers.get("retry-after")) > 0, text);
      seen.refused.add(response.status);
      await pause(20);
      continue;
    }
    for (const [, data = ""] of text.matchAll(/^data: (.*)$/gm)) {
      const entry = JSON.parse(data);
      seqs.push(entry.seq);
      if (entry.event === "run:end") ended = entry.data.run.status;
    }
    assertEquals([ended, seqs], ["completed", seqs.map((_, index) => index + 1)]);
  }
  seen.runs.push(run);
}

Deno.test({
  name:
    "Postgres is restarted and its connections are cut 20 times: runs wait, and nothing is lost or doubled",
  ignore: POSTGRES === null,
  async fn() {
    await using database = await startPostgres();
    const cut = async () => {
      const client = new pg.Client({ connectionString: database.url });
      await client.connect();
      await client.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND application_name = 'preamp'",
      );
      await client.end();
    };
    let time = 0;
    const seen = await checkOutages(database.url, 40, () => time++ % 2 === 0 ? database.restart() : cut());
    assert(seen.waits > 0);
    assertEquals(seen.refused.has(507), false);
  },
});

const disk = await mountSmallDisk();
Deno.test.afterAll(async () => await disk?.[Symbol.asyncDispose]());

Deno.test({
  name: "SQLite's disk is full 10 times: runs wait, and nothing is lost or doubled",
  ignore: disk === null,
  async fn() {
    const seen = await checkOutages(`sqlite:${disk!.path}/runs.db`, 10, async () => {
      const free = await disk!.fill();
      await pause(700);
      await free();
    });
    assert(seen.waits > 0);
  },
});
