/**
 * What a crash loses: a process that appends to a log is killed with SIGKILL, and every entry that it had
 * acknowledged must be there. `store_requests_bench.ts` measures the speed of the stores.
 *
 *   deno run -A tests/bench/store_bench.ts [kills]
 */
import { openStore } from "../../src/server/mod.ts";
import { POSTGRES, startPostgres } from "../support/postgres.ts";
import { print, report } from "./figures.ts";

const kills = Number(Deno.args[0] ?? 20);

const folder = await Deno.makeTempDir();
await using database = POSTGRES === null ? null : await startPostgres();
const stores: Record<string, string> = {
  sqlite: `sqlite:${folder}/runs.db`,
  ...(database ? { postgres: database.url } : {}),
};
try {
  const figures: Record<string, number> = {};
  if (database === null) print("Postgres is not installed here: not measured");
  for (const [name, url] of Object.entries(stores)) {
    const { acknowledged, lost } = await killWhileAppending(name, url);
    print(`${name}: killed ${kills} times, ${acknowledged} entries acknowledged, ${lost} lost`);
    figures[`${name}_lost`] = lost;
  }
  report("store", figures);
} finally {
  await Deno.remove(folder, { recursive: true });
}

/** Kills processes that append; counts the acknowledged entries and those that are not there afterwards. */
async function killWhileAppending(
  name: string,
  url: string,
): Promise<{ acknowledged: number; lost: number }> {
  let [acknowledged, lost] = [0, 0];
  for (let kill = 0; kill < kills; kill++) {
    const log = `${name}-${kill}`;
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", new URL("./append_forever.ts", import.meta.url).pathname, url, log],
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    let last = 0;
    const reading = (async () => {
      for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
        last = Number(text.trimEnd().split("\n").at(-1)) || last;
        if (last > 50 + Math.random() * 500) child.kill("SIGKILL");
      }
    })();
    await Promise.all([child.status, reading.catch(() => {})]);
    const store = await openStore(url);
    const found = await store.entries(log, 0, Number.MAX_SAFE_INTEGER) ?? [];
    await store.close();
    acknowledged += last;
    lost += Math.max(0, last - found.length);
  }
  return { acknowledged, lost };
}
