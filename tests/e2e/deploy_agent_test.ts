/**
 * The folder that `preamp init --deploy` writes: the commands of README.md, and two instances as Deno Deploy
 * starts them, on one Postgres.
 */
import { AnswerText, type Entry, PreampClient } from "preamp/client";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { endChild, Tail } from "../support/child_process.ts";
import { HANGS_MS } from "../support/clock.ts";
import { temporaryFolder } from "../support/folder.ts";
import { freePort } from "../support/free_port.ts";
import { POSTGRES, startPostgres } from "../support/postgres.ts";
import { readPage } from "./page.ts";
import { type Json, runProgram } from "./program.ts";
import { shell } from "./shell.ts";

const KEY = "a-key-of-this-test";
const AUTHORIZED = { authorization: `Bearer ${KEY}`, "content-type": "application/json" };

/** The executable has no sources to copy. */
const BINARY = Deno.env.has("PROGRAM_UNDER_TEST");

/** A provider that streams a half of its answer and waits, where the variable HALVES is set. */
const PROVIDER = `import { defineProvider, ModelInfo, ProviderInfo, Usage } from "preamp";
const WINDOW = { context_window: 100_000, max_output_tokens: 4096 };
export const module = { id: "provider-halves", type: "provider", version: "1.0.0", description: "Halves" };
export async function mount(coordinator) {
  await coordinator.mount("providers", defineProvider({
    name: "halves",
    getInfo: () => ProviderInfo({ id: "halves", capabilities: ["streaming"], defaults: WINDOW }),
    listModels: () => Promise.resolve([ModelInfo({ id: "halves-1", ...WINDOW })]),
    async complete(_request, { onDelta } = {}) {
      onDelta?.({ block_index: 0, block_type: "text", delta: "The whole " });
      if (Deno.env.get("HALVES")) await new Promise((resolve) => setTimeout(resolve, 600_000));
      onDelta?.({ block_index: 0, block_type: "text", delta: "answer." });
      const content = [{ type: "text", text: "The whole answer." }];
      return { content, finish_reason: "stop", usage: Usage({ input_tokens: 1, output_tokens: 3 }) };
    },
    parseToolCalls: () => [],
  }), "halves");
}
`;

const PLAN = `session: { orchestrator: loop-streaming, context: context-simple }
providers: [{ module: provider-halves, source: ./provider.js }]
`;

/** The folder of all tests, and what `init` printed. */
let folder = "";
let written = "";
Deno.test.beforeAll(async () => {
  if (BINARY) return;
  folder = `${(await Deno.realPath(await Deno.makeTempDir()))}/agent`;
  const made = await runProgram(["init", "--deploy", folder]);
  assertEquals(made.code, 0, made.stderr);
  written = made.stdout;
});
Deno.test.afterAll(async () => {
  if (!BINARY) await Deno.remove(folder.replace(/\/agent$/, ""), { recursive: true });
});

Deno.test({
  name: "init --deploy says that it needs the sources of the program",
  ignore: !BINARY,
  async fn() {
    const { code, stderr } = await runProgram(["init", "--deploy", "somewhere"]);
    assertEquals(code, 2);
    assertStringIncludes(stderr, "it copies the sources of this program");
  },
});

/** An instance of the folder's program. */
interface Instance extends AsyncDisposable {
  readonly url: string;
  output(): string;
  /** What it has written to stderr. */
  readonly log: Tail;
  /** Stops it at once, as a host that evicts it. */
  evict(): Promise<void>;
}

/** Starts the folder's program as Deno Deploy does: no child processes, a tree that is not written to. */
function startInstance(env: Record<string, string>): Promise<Instance> {
  return startMain({
    DENO_AUTO_SERVE: "1",
    DENO_DEPLOY: "1",
    DENO_SERVE_ADDRESS: "tcp:127.0.0.1:0",
    ...env,
  }, ["run", "--unstable-cron"]);
}

/** Starts the folder's `main.ts` by a command of Deno. */
async function startMain(env: Record<string, string>, [command = "", ...flags]: string[]): Promise<Instance> {
  const child = new Deno.Command(Deno.execPath(), {
    args: [command, "--no-prompt", "--allow-all", "--deny-run", `--deny-write=${folder}`, "--no-lock"]
      .concat(flags, "main.ts"),
    cwd: folder,
    clearEnv: true,
    env: {
      ...kept("PATH", "DENO_DIR", "DENO_TLS_CA_STORE", "XDG_CACHE_HOME"),
      ...Deno.env.has("DENO_DIR") ? {} : kept("HOME"),
      PREAMP_API_KEYS: KEY,
      NO_COLOR: "1",
      ...env,
    },
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const [stdout, stderr] = [new Tail(child.stdout), new Tail(child.stderr)];
  const evict = async () => {
    endChild(child, "SIGKILL");
    await Promise.all([child.status, stdout.closed, stderr.closed]);
  };
  const late = setTimeout(evict, HANGS_MS);
  const text = await Promise.race(
    [stdout, stderr].map((tail) => tail.until((text) => /http:\S+\d/.test(text))),
  );
  clearTimeout(late);
  const url = /http:\/\/[\d.:]+\d/.exec(text)?.[0] ?? "";
  const output = () => stdout.text + stderr.text;
  if (url === "") throw new Error(`Cannot start the instance: ${output()}`);
  return { url, output, log: stderr, evict, [Symbol.asyncDispose]: evict };
}

function kept(...names: string[]): Record<string, string> {
  return Object.fromEntries(names.flatMap((name) => Deno.env.has(name) ? [[name, Deno.env.get(name)!]] : []));
}

async function ask(url: string, path: string, body?: unknown): Promise<{ status: number; body: Json }> {
  const response = await fetch(url + path, {
    headers: AUTHORIZED,
    ...body === undefined ? {} : { method: "POST", body: JSON.stringify(body) },
  });
  return { status: response.status, body: await response.json() };
}

Deno.test({
  name: "README.md makes an endpoint that answers in five commands",
  ignore: BINARY,
  async fn() {
    const { blocks } = await readPage("README.md");
    const block = blocks("sh").find((text) => text.includes("--deploy"))!;
    const [init, enter, key, start, ...curl] = block.split("\n");
    assertMatch(init!, /^deno run -A main\.ts init --deploy \/tmp\/my-endpoint$/);
    assertEquals(enter, "cd /tmp/my-endpoint");
    for (const line of [key!, start!, curl[0]!.slice(0, 40)]) assertStringIncludes(written, line.trim());
    await using home = await temporaryFolder();
    const port = String(freePort());
    const config = `${folder}/deno.json`;
    const text = await Deno.readTextFile(config);
    try {
      await Deno.writeTextFile(config, text.replace("--port 8000", `--port ${port}`));
      const commands = [key, start, curl.join("\n").replace(":8000", `:${port}`), "kill $!; wait"].join("\n");
      const env = { PREAMP_HOME: home.path, PATH: `${await denoFolder(home.path)}:${Deno.env.get("PATH")}` };
      const run = JSON.parse(
        (await shell(commands, { cwd: folder, env })).split("\n").find((line) => line.startsWith("{"))!,
      );
      assertEquals([run.status, run.output_text], ["completed", "6 × 7 is 42."]);
    } finally {
      await Deno.writeTextFile(config, text);
    }
  },
});

/** Returns a folder with this Deno under the name `deno`. */
async function denoFolder(home: string): Promise<string> {
  await Deno.symlink(Deno.execPath(), `${home}/deno`);
  return home;
}

Deno.test({
  name: "init --deploy keeps the files that are there, and writes the program again",
  ignore: BINARY,
  async fn() {
    const plan = `${folder}/plan.yaml`;
    const text = await Deno.readTextFile(plan);
    await Deno.writeTextFile(plan, `# mine\n${text}`);
    await Deno.writeTextFile(`${folder}/vendor/preamp/old.ts`, "");
    const { code, stdout, stderr } = await runProgram(["init", "--deploy", folder]);
    assertEquals(code, 0, stderr);
    assertStringIncludes(stdout, "Kept as they are: plan.yaml, preamp.yaml, main.ts");
    assertStringIncludes(await Deno.readTextFile(plan), "# mine");
    assertEquals(await Deno.stat(`${folder}/vendor/preamp/old.ts`).catch(() => null), null);
    await Deno.writeTextFile(plan, text);
    await using other = await temporaryFolder();
    await Deno.mkdir(`${other.path}/vendor/preamp`, { recursive: true });
    await Deno.writeTextFile(`${other.path}/vendor/preamp/mine.txt`, "mine");
    const refused = await runProgram(["init", "--deploy", other.path]);
    assertEquals(refused.code, 2);
    assertStringIncludes(refused.stderr, "Cannot write vendor/preamp/: something else is there");
  },
});

Deno.test({
  name: "an instance answers by the stand-in, has its page, and refuses background runs without a database",
  ignore: BINARY,
  async fn() {
    await using instance = await startInstance({});
    const { status, body } = await ask(instance.url, "/v1/runs", { prompt: "What is 6 × 7?" });
    assertEquals([status, body.status, body.output_text], [200, "completed", "6 × 7 is 42."]);
    assertEquals(body.limits.max_cost_usd, "0.05");
    const page = await fetch(instance.url, { headers: { accept: "text/html" } });
    assertEquals([page.status, (await page.text()).includes("page/page.")], [200, true]);
    const refused = await ask(instance.url, "/v1/runs", { prompt: "x", background: true });
    assertEquals([refused.status, refused.body.error.code], [403, "forbidden"]);
    assertStringIncludes(instance.output(), '"store":"memory","background":false');
  },
});

Deno.test({
  name: "under deno serve the endpoint takes the database of DATABASE_URL, and without one a file",
  ignore: BINARY,
  async fn() {
    const command = ["serve", "--host", "127.0.0.1", "--port", "0"];
    await using home = await temporaryFolder();
    await using instance = await startMain({ PREAMP_HOME: home.path }, command);
    assertEquals((await ask(instance.url, "/v1/runs", { prompt: "hi" })).status, 200);
    assertStringIncludes(instance.output(), '"store":"sqlite","background":true');
    await using other = await startMain({ DATABASE_URL: "mysql://a:hunter2@127.0.0.1/x" }, command);
    assertEquals((await ask(other.url, "/v1/runs", { prompt: "hi" })).status, 500);
    const text = await other.log.until((text) => text.includes("must be postgres://"));
    assertEquals([text.includes("must be postgres://"), text.includes("hunter2")], [true, false]);
  },
});

Deno.test({
  name: "nothing in the folder is trusted that was not vendored, and that only as it is",
  ignore: BINARY,
  async fn() {
    await vendor();
    try {
      const agent = await Deno.readTextFile(`${folder}/agents/halves.yaml`);
      const loose = { // the same code by its path, without its digest, and with another one
        "path.yaml": agent.replace(/\n *integrity:.*\n *isolation:.*/, ""),
        "bare.yaml": agent.replace(/\n *integrity:.*/, ""),
        "wrong.yaml": agent.replace(/sha256-./, (text) => text.endsWith("A") ? "sha256-B" : "sha256-A"),
      };
      for (const [name, text] of Object.entries(loose)) {
        await Deno.writeTextFile(`${folder}/agents/${name}`, text);
      }
      await using instance = await startInstance({});
      const codes = [];
      for (const name of ["halves", "path", "bare", "wrong"]) {
        const { body } = await ask(instance.url, "/v1/runs", { prompt: "x", plan_ref: name });
        codes.push(body.error?.code ?? body.status);
      }
      assertEquals(codes, [
        "completed",
        "isolation_unavailable",
        "policy_refused",
        "module_integrity_mismatch",
      ]);
      const sent = await ask(instance.url, "/v1/runs", { prompt: "x", plan: agent }); // a caller's plan is no vendoring
      assertEquals(sent.body.error.code, "module_source_denied");
      const { body: samples } = await ask(instance.url, "/v1/plans");
      const names = samples.data.map(({ name }: Json) => name);
      assertEquals(names.sort(), ["bare", "default", "halves", "path", "wrong"]);
    } finally {
      for (const name of ["path", "bare", "wrong"]) {
        await Deno.remove(`${folder}/agents/${name}.yaml`).catch(() => {}); // it may not be written yet
      }
    }
  },
});

/** Vendors the provider of this test with the folder's own program. */
async function vendor(): Promise<void> {
  await Deno.writeTextFile(`${folder}/provider.js`, PROVIDER);
  await Deno.writeTextFile(`${folder}/halves.yaml`, PLAN);
  const { success, stderr } = await new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "vendor/preamp/main.ts", "plan", "vendor", "--inline", "halves.yaml", "-o", "agents"],
    cwd: folder,
    env: { NO_COLOR: "1" },
  }).output();
  assert(success, new TextDecoder().decode(stderr));
}

Deno.test({
  name: "a run whose instance is evicted in mid-stream is completed by another one, for the same stream",
  ignore: BINARY || POSTGRES === null,
  async fn() {
    await vendor();
    await using database = await startPostgres();
    await using first = await startInstance({ DATABASE_URL: database.url, HALVES: "1" });
    await using second = await startInstance({ DATABASE_URL: database.url });
    assertEquals((await ask(second.url, "/readyz")).status, 200); // its first request opens it
    let at = first.url;
    const client = new PreampClient({
      url: first.url,
      key: KEY,
      maxDelayMs: 500,
      fetch: (input, init) => fetch(String(input).replace(first.url, at), init),
    });
    const entries: Entry[] = [];
    const answer = new AnswerText();
    const shown = new Set<string>();
    for await (const entry of client.stream({ prompt: "x", plan_ref: "halves" })) {
      entries.push(entry);
      shown.add(answer.add(entry));
      if (entry.event !== "content_block:delta" || at === second.url) continue;
      await first.evict();
      at = second.url; // the host sends further requests to it
    }
    const events = entries.map(({ event }) => event);
    assertEquals(entries.map(({ seq }) => seq), entries.map((_, index) => index + 1));
    assertEquals(events.filter((event) => event === "run:end").length, 1);
    const run = await client.getRun(entries[0]!.run_id);
    assertEquals([run.status, run.output_text], ["completed", "The whole answer."]);
    // the half of the first instance was shown, and did not become a part of the answer
    assertEquals([...shown], ["", "The whole ", "The whole answer."]);
    const lost = entries.find(({ event }) => event === "content_block:delta")!;
    const voids = entries.filter(({ event }) => event === "content_block:void");
    assertEquals(voids.map(({ data }) => data), [{ request_id: lost.data.request_id }]);
    const later = entries.filter(({ event, seq }) => event === "content_block:delta" && seq > voids[0]!.seq);
    assertEquals(later.some(({ data }) => data.request_id === lost.data.request_id), false);
    assertStringIncludes(second.output(), '"store":"postgres","background":true');
  },
});
