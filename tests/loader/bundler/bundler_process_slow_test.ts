import { waitFor } from "preamp/testing";
import { createHash } from "node:crypto";
import {
  createBundlerProcess,
  MAX_ANSWER_BYTES,
  startBundlerChild,
} from "../../../src/loader/bundler/bundler_process.ts";
import { Child, ownEnv } from "../../../src/process/child_process.ts";
import type { BundlerClient, BundleRequest } from "../../../src/loader/types.ts";
import { assert, assertEquals, assertMatch } from "../../assert.ts";
import { refusal } from "../../support/plans.ts";
import { busyTime } from "../../support/busy_time.ts";

function requestOf(source: string, url = "https://h.test/mod.ts"): BundleRequest {
  const bytes = new TextEncoder().encode(source);
  const sha256 = createHash("sha256").update(url).update(bytes).digest("hex"); // each address its own source
  return { entry: url, files: [{ url, sha256, bytes }], redirects: {}, failed: {}, esm_host: "none" };
}

function clientOf(name: string, owner = "key:test"): BundlerClient {
  return { name, owner, trusted: false };
}

/** Starts a child that speaks the protocol and does what a test wants. */
function startOf(body: string): () => Child {
  const io = new URL("../../../src/process/child_io.ts", import.meta.url).href;
  const code = `import { FrameWriter, parentFrames } from "${io}";
    const frames = parentFrames(1e8);
    const output = new FrameWriter();
    const answer = (id, more = {}) => output.write(JSON.stringify({ id, answer: { kind: "problems", problems: [{ message: String(Deno.pid) }], ...more } }));
    output.write(JSON.stringify({ id: 0, answer: { kind: "ready" } }));
    for (let frame = await frames.next(), turn = 1; frame; frame = await frames.next(), turn++) { const { id, request: { entry } } = JSON.parse(frame.text); ${body} }`;
  return () =>
    new Child({
      command: Deno.execPath(),
      args: [
        ...["run", "--no-prompt", "--no-check", "--cached-only", "--config"],
        new URL("../../../deno.json", import.meta.url).pathname,
        `data:text/typescript,${encodeURIComponent(code)}`,
      ],
      env: ownEnv(),
      limit: () => MAX_ANSWER_BYTES,
    });
}

async function pidOf(answer: Promise<unknown>): Promise<number> {
  return Number((await answer as { problems: { message: string }[] }).problems[0]?.message);
}

function isAlive(pid: number): boolean {
  try {
    Deno.kill(pid, "SIGCONT");
    return true;
  } catch {
    return false;
  }
}

Deno.test("bundle() kills a child that does not answer in time, and starts another", async () => {
  const start = startOf(
    `if (entry.includes("hang")) { Deno.stdout.writeSync(new Uint8Array(3)); for (;;); } answer(id);`,
  );
  const bundler = createBundlerProcess({ start, deadline_ms: 300 });
  const first = await pidOf(bundler.bundle(requestOf("", "https://h.test/a.ts"), clientOf("a")));
  const hanging = bundler.bundle(requestOf("", "https://h.test/hang.ts"), clientOf('module "b"'));
  const waiting = pidOf(bundler.bundle(requestOf("", "https://h.test/c.ts"), clientOf("c")));
  const error = await refusal(() => hanging);
  assertEquals(error.code, "module_invalid");
  assertMatch(error.message, /Cannot bundle module "b": it timed out after 0\.3 s/);
  assert(await waiting !== first);
  assertEquals(isAlive(first), false);
  await bundler.close();
});

Deno.test("bundle() asks a new child once when the old one died, and says so when that dies too", async () => {
  const bundler = createBundlerProcess({
    start: startOf("if (turn === 2 || entry.includes('die')) Deno.exit(9); answer(id);"),
  });
  const pids = [
    await pidOf(bundler.bundle(requestOf(""), clientOf("a"))),
    await pidOf(bundler.bundle(requestOf(""), clientOf("b"))),
  ];
  assert(pids[0] !== pids[1]);
  const error = await refusal(() => bundler.bundle(requestOf("", "https://h.test/die.ts"), clientOf("c")));
  assertEquals(error.code, "module_load_failed");
  await bundler.close();
});

for (
  const [what, body] of Object.entries({
    "bytes that are no message":
      "Deno.stdout.writeSync(new TextEncoder().encode('hello, this is no message'));",
    "a message of two gigabytes": "Deno.stdout.writeSync(Uint8Array.of(0, 0, 0, 9, 128, 0, 0, 0));",
    "the answer to another question": "answer(id + 1);",
  })
) {
  Deno.test(`bundle() takes ${what} for a broken child`, async () => {
    const bundler = createBundlerProcess({ start: startOf(body) });
    assertEquals(
      (await refusal(() => bundler.bundle(requestOf(""), clientOf("a")))).code,
      "module_load_failed",
    );
    await bundler.close();
  });
}

Deno.test("an idle child is stopped after a while, and started again when it is needed", async () => {
  const bundler = createBundlerProcess({ start: startOf("answer(id);"), idle_ms: 20 });
  const first = await pidOf(bundler.bundle(requestOf(""), clientOf("a")));
  assert(await waitFor(() => !isAlive(first)));
  assert(await pidOf(bundler.bundle(requestOf(""), clientOf("b"))) !== first);
  await bundler.close();
});

Deno.test("bundle() says what to do where no process may be started", async () => {
  const bundler = createBundlerProcess({
    start: () => new Child({ command: "/nowhere/at/all", args: [], env: {}, limit: () => 0 }),
  });
  const error = await refusal(() => bundler.bundle(requestOf(""), clientOf("a")));
  assertMatch(error.message, /pass --allow-run/);
  await bundler.close();
});

Deno.test("twenty bundles at once do not occupy this thread for 100 ms of processor time", async () => {
  const bundler = createBundlerProcess();
  const source = `export const mount = () => [${
    Array.from({ length: 1000 }, (_, index) => `{ text: "${index}".repeat(3) }`)
  }];`;
  const { busy_ms } = await busyTime(async () => {
    const urls = Array.from({ length: 20 }, (_, index) => `https://h.test/${index}.ts`);
    const answers = await Promise.all(
      urls.map((url) => bundler.bundle(requestOf(source, url), clientOf("a"))),
    );
    assertEquals(answers.map(({ kind }) => kind), Array(20).fill("bundle"));
  });
  assert(busy_ms < 100, `${busy_ms} ms`);
  await bundler.close();
});

Deno.test("the bundler child says only that it is ready, and ends with its input", async () => {
  const child = startBundlerChild();
  const ready = await child.next();
  await child.end();
  assertEquals([ready?.text, await child.next(), (await child.status).success, child.stderr], [
    JSON.stringify({ id: 0, answer: { kind: "ready" } }),
    null,
    true,
    "",
  ]);
  await child.close();
});

Deno.test("bundle() asks no child again about a source that took too long or ended it", async () => {
  let starts = 0;
  const start = startOf(
    "if (entry.includes('hang')) for (;;); if (entry.includes('die')) Deno.exit(9); answer(id);",
  );
  const bundler = createBundlerProcess({
    start: () => {
      starts++;
      return start();
    },
    deadline_ms: 300,
  });
  for (
    const [name, message] of [["hang", /timed out after 0\.3 s/], [
      "die",
      /exited while it worked on it/,
    ]] as const
  ) {
    const request = requestOf(name, `https://h.test/${name}.ts`);
    assertMatch((await refusal(() => bundler.bundle(request, clientOf("a")))).message, message);
    await bundler.bundle(requestOf(`good ${name}`), clientOf("b"));
    const before = starts;
    assertMatch((await refusal(() => bundler.bundle(request, clientOf("a")))).message, message);
    assertEquals(starts, before);
  }
  await bundler.close();
});

Deno.test("bundle() serves owners in turn: many slow sources of one do not keep another waiting for all of them", async () => {
  const bundler = createBundlerProcess({
    start: startOf(
      "if (entry.includes('slow')) await new Promise((done) => setTimeout(done, 100)); answer(id);",
    ),
  });
  const ended: string[] = [];
  const bundle = (name: string, owner: string) =>
    bundler.bundle(requestOf(name, `https://h.test/${name}.ts`), clientOf(name, owner)).then(() =>
      ended.push(name)
    );
  await Promise.all([
    bundle("slow1", "key:one"),
    bundle("slow2", "key:one"),
    bundle("slow3", "key:one"),
    bundle("quick", "key:two"),
  ]);
  assertEquals(ended, ["slow1", "quick", "slow2", "slow3"]);
  await bundler.close();
});
