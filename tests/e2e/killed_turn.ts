/**
 * A server for `kill_points_test.ts`: runs one scripted turn and kills itself with SIGKILL around one of its
 * commits, or recovers the runs of those that were killed.
 *
 *   killed_turn.ts STORE EFFECTS NAME before|after COMMIT
 *   killed_turn.ts STORE EFFECTS recover
 *
 * Its tool appends `NAME` to the file `EFFECTS`. It exits with 0 when the turn has fewer commits.
 */
import { createPreamp, openStore, type Store } from "../../src/server/mod.ts";
import { defineTool, z } from "../../src/sdk/mod.ts";

const [url = "", effects = "", name = "", when = "", commit = ""] = Deno.args;

const note = defineTool({
  name: "note",
  description: "Writes a line.",
  input: z.object({ name: z.string() }),
  execute: ({ name }) => {
    Deno.writeTextFileSync(effects, `${name}\n`, { append: true });
    return "noted";
  },
});

const store = await openStore(url);
const preamp = createPreamp({
  authenticate: null,
  log: null,
  store: name === "recover" ? store : mortal(store, Number(commit)),
  modules: { "tool-note": (coordinator) => coordinator.mount("tools", note) },
});
const send = async (path: string, body?: unknown) => {
  const init = body === undefined ? {} : {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  };
  return await (await preamp.fetch(new Request(`http://localhost${path}`, init))).json();
};
const call = { name: "note", arguments: { name } };
const plan = {
  session: { orchestrator: "loop-streaming", context: "context-simple" },
  providers: [{
    module: "provider-mock",
    config: { responses: [{ tool_calls: [call] }, { text: "Noted." }] },
  }],
  tools: ["tool-note"],
};
if (name === "recover") {
  await new Blob([JSON.stringify(await recovered())]).stream().pipeTo(Deno.stdout.writable, {
    preventClose: true,
  });
} else await send("/v1/runs", { prompt: name, plan });
await preamp.close();

/** Resolves to all runs with their events, once they have ended; then each session answers again. */
async function recovered(): Promise<unknown[]> {
  const all = async () =>
    (await send("/v1/runs?limit=1000")).data as { id: string; ended_at: string | null }[];
  for (let tries = 0; tries < 300 && (await all()).some(({ ended_at }) => ended_at === null); tries++) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const found = [];
  for (const { id } of await all()) {
    const run = await send(`/v1/runs/${id}`);
    const { data: events } = await send(`/v1/runs/${id}/events`);
    // a process that dies after the end of its run keeps the session until it is found dead
    const again = { prompt: "again", session_id: run.session_id, if_busy: "queue" };
    const next = await send("/v1/runs", again);
    found.push({ run, events, next: next.status ?? next });
  }
  return found;
}

/** Returns the store of a process that dies around commit number `last` of its run. */
function mortal(store: Store, last: number): Store {
  let run_id: string | undefined;
  let count = 0;
  const dies = (at: string) => {
    if (at === when && count === last) Deno.kill(Deno.pid, "SIGKILL");
  };
  return new Proxy(store, {
    get(target, key) {
      if (key !== "commit") {
        const value = Reflect.get(target, key, target);
        return typeof value === "function" ? value.bind(target) : value;
      }
      return async (...[changes, fence]: Parameters<Store["commit"]>) => {
        const first = changes.find((change) => "append" in change);
        if (first?.after === 0) run_id ??= first.append;
        const is_own = run_id !== undefined && JSON.stringify(changes).includes(run_id);
        if (is_own) count++;
        if (is_own) dies("before");
        await target.commit(changes, fence);
        if (is_own) dies("after");
      };
    },
  });
}
