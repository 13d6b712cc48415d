/**
 * The recipes of src/docs/recipes.md: every file saved, every command run, with models and servers on
 * loopback.
 */
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { fakeVendor } from "../modules/providers/fake_vendor.ts";
import type { FakeAnswer } from "../modules/providers/faults.ts";
import { inFolder, temporaryFolder } from "../support/folder.ts";
import { onWebServer } from "../support/mcp_web_server.ts";
import { argumentsOf, programsIn, readPage } from "./page.ts";
import { ROOT, runCommand, runProgram, startServer } from "./program.ts";
import { WIRES } from "./provider_wires.ts";
import { shell } from "./shell.ts";

const PAGE = await readPage("src/docs/recipes.md");
const { vendor, env } = WIRES["Anthropic"]!;
/** The library is always that of the source, also where the executable is tested. */
const FROM_SOURCE = `'${Deno.execPath()}' run --config='${ROOT}deno.json'`;

/** Returns the answer of a model that calls a tool. */
function callOf(name: string, input: Record<string, unknown>): FakeAnswer {
  return { calls: [{ id: `call_${name}`, name, arguments: [JSON.stringify(input)] }] };
}

/** A folder with the programs of a reader, and a model that gives the answers. */
interface Bench {
  readonly folder: string;
  readonly env: Record<string, string>;
  /** Returns a request that the model has received, by its number. */
  asked(count: number): string;
  write(path: string, text: string): Promise<void>;
  /** Runs commands; resolves to what they print. */
  run(commands: string): Promise<string>;
}

function withModel(answers: readonly FakeAnswer[], use: (bench: Bench) => Promise<void>): Promise<void> {
  return inFolder(async (folder) => {
    await using model = fakeVendor(vendor, answers);
    const bin = await programsIn(folder);
    const work = `${folder}/work`;
    await Deno.mkdir(`${work}/plans`, { recursive: true });
    const variables = { ...env(model.url), NO_COLOR: "1", PREAMP_HOME: `${folder}/home` };
    await use({
      folder: work,
      env: variables,
      asked: (count) => JSON.stringify(model.requests[count - 1]?.body ?? null),
      write: (path, text) => Deno.writeTextFile(`${work}/${path}`, `${text}\n`),
      run: (commands) => shell(`PATH='${bin}':$PATH\nset -e\n${commands}`, { cwd: work, env: variables }),
    });
  });
}

Deno.test("the file agent writes a summary in its folder, and undo takes it back", () => {
  const { blocks } = PAGE.section("A file agent");
  const answers = [
    callOf("read", { path: "party.md" }),
    callOf("write", { path: "summaries/party.md", content: "Friday, big room." }),
    { text: ["It is there."] },
  ];
  return withModel(answers, async ({ folder, write, run }) => {
    await write("notes.yaml", blocks("yaml")[0]!);
    const [commands = ""] = blocks("sh");
    const printed = await run(commands);
    assertMatch(printed, /May read .*notes.* write .*summaries/s);
    assertStringIncludes(printed, "It is there.");
    assertStringIncludes(printed, "Friday, big room.");
    assertEquals(await Array.fromAsync(Deno.readDir(`${folder}/notes/summaries`)), []);
  });
});

Deno.test("the file agent writes nowhere else, by its rules and by its permissions", async () => {
  const { blocks } = PAGE.section("A file agent");
  const [commands = ""] = blocks("sh");
  const plan = blocks("yaml")[0]!;
  const call = callOf("write", { path: "party.md", content: "gone" });
  for (const text of [plan, plan.replace(/^hooks:[^]*(?=^limits)/m, "")]) {
    await withModel([call, { text: ["I may not."] }], async ({ folder, write, run, asked }) => {
      await write("notes.yaml", text);
      await run(commands.replace(/cat [^]*/, ""));
      assertMatch(await Deno.readTextFile(`${folder}/notes/party.md`), /Friday/);
      assertStringIncludes(asked(2), text === plan ? "Denied by hook" : "only files in");
    });
  }
});

/** A picture of one point. */
const PICTURE = Uint8Array.fromBase64(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==",
);

/** Starts a server with the key of the recipes; `here` puts its address into commands. */
async function startRecipeServer({ folder, env }: Bench) {
  const server = await startServer([], { cwd: folder, env: { ...env, PREAMP_API_KEYS: "a-secret-key" } });
  const here = (text: string) => text.replaceAll("127.0.0.1:8484", new URL(server.url).host);
  return { here, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() };
}

Deno.test("files and pictures go along with a prompt, by a flag, by their names, and over HTTP", () => {
  const [commands = "", script = "", start = ""] = PAGE.section("Files and pictures with a prompt").blocks(
    "sh",
  );
  const answers = ["On Friday.", "On the left.", "On the right."].map((text) => ({ text: [text] }));
  return withModel(answers, async (bench) => {
    const { folder, write, run, asked } = bench;
    await Deno.writeFile(`${folder}/room.png`, PICTURE);
    assertEquals(await run(commands), "On Friday.\nOn the left.\n");
    assertStringIncludes(asked(1), "in the big room");
    await using server = await startRecipeServer(bench);
    await write("picture.sh", server.here(script));
    assertStringIncludes(await run(start), "On the right.");
    for (const count of [2, 3]) assertStringIncludes(asked(count), PICTURE.toBase64());
  });
});

Deno.test("a run is run again from its model call with another plan", () => {
  const [script = "", start = ""] = PAGE.section("What if").blocks("sh");
  return withModel([{ text: ["We open at nine in the morning."] }, { text: ["At nine."] }], async (bench) => {
    const { write, run, asked } = bench;
    await using server = await startRecipeServer(bench);
    await write("what_if.sh", server.here(script));
    const plan = {
      session: { orchestrator: "loop-streaming", context: "context-simple" },
      providers: ["provider-anthropic"],
    };
    const post = server.here(
      `curl -s http://127.0.0.1:8484/v1/runs -H "Authorization: Bearer a-secret-key" --json '${
        JSON.stringify({ plan, prompt: "When do you open?" })
      }'`,
    );
    const { id } = JSON.parse(await run(post));
    const again = JSON.parse(await run(start.replace("run_…", id)));
    assertEquals(again.forked_from.run_id, id);
    const events =
      `curl -s -N http://127.0.0.1:8484${again.events_url} -H "Authorization: Bearer a-secret-key"`;
    assertStringIncludes(await run(server.here(events)), "At nine."); // they end with the run
    assertStringIncludes(asked(2), "Answer in five words.");
    assertStringIncludes(asked(2), "When do you open?");
  });
});

Deno.test("a bundle of Amplifier becomes a plan that runs", () => {
  const [commands = ""] = PAGE.section("A bundle of Amplifier").blocks("sh");
  return withModel([{ text: ["Hello."] }], async ({ folder, write, run, asked }) => {
    await Deno.mkdir(`${folder}/my-bundle`);
    await write(
      "my-bundle/bundle.md",
      "---\nbundle: { name: greeter }\nsession: { orchestrator: { module: loop-streaming }, context: { module: " +
        "context-simple } }\nproviders: [{ module: provider-anthropic }]\n---\n\nYou greet people.",
    );
    assertMatch(await run(commands), /Hello\.\n$/);
    assertStringIncludes(asked(1), "You greet people.");
  });
});

Deno.test("the chat service keeps a conversation for each user", () => {
  const { blocks } = PAGE.section("A chat service with sessions");
  return withModel(
    [{ text: ["At nine."] }, { text: ["At ten."] }],
    async ({ write, run, folder, env, asked }) => {
      await write("plans/support.yaml", blocks("yaml")[0]!);
      const [start = "", client = ""] = blocks("sh");
      assertEquals(start, "PREAMP_API_KEYS=a-secret-key preamp serve --plans plans/");
      const options = { cwd: folder, env: { ...env, PREAMP_API_KEYS: "a-secret-key" } };
      await using server = await startServer(["--plans", "plans/"], options);
      const { host } = new URL(server.url);
      const here = (text: string) => text.replaceAll("127.0.0.1:8484", host);
      await write("chat.ts", here(blocks("ts ignore")[0]!));
      const printed = await run(here(client).replace("deno run", FROM_SOURCE));
      assertEquals(printed, "At nine.\nAt ten.\n5 messages\n");
      assertStringIncludes(asked(2), "When do you open?");
    },
  );
});

Deno.test("the Hono application answers its users with its own tool", () => {
  const { blocks } = PAGE.section("A Hono application");
  const answers = [
    callOf("find_book", { title: "Emma" }),
    { text: ["Yes, Emma is there."] },
  ];
  return withModel(answers, async ({ write, run, asked }) => {
    const listener = Deno.listen({ port: 0, hostname: "127.0.0.1" });
    const { port } = listener.addr;
    listener.close();
    await write("app.ts", blocks("ts ignore")[0]!.replace("port: 8000", `port: ${port}`));
    await write("plans/default.yaml", blocks("yaml")[0]!);
    const [start = "", request = ""] = blocks("sh")[0]!.split("&\n");
    const printed = await run(
      `${start.replace("deno run", FROM_SOURCE)} &
       app=$!
       trap 'kill $app; wait $app' EXIT
       until ${request.replaceAll("8000", String(port))} 2> /dev/null; do kill -0 $app; sleep 0.2; done`,
    );
    assertMatch(printed, /Yes, Emma is there\./);
    assertStringIncludes(asked(2), "Emma is on the shelf.");
  });
});

Deno.test("the job in CI ends with the verdict of the review", async () => {
  const { blocks } = PAGE.section("A job in CI");
  const job = `git init -q -b main . && git config user.email a@example.com && git config user.name A
    echo one > file && git add file && git commit -q -m one
    git checkout -q -b change && echo two >> file && git commit -q -a -m two
    if sh review.sh main; then echo passed; else echo failed; fi`;
  for (const [verdict, end] of [["ok", "passed"], ["problems", "failed"]]) {
    const answers = [{ text: [`file:2 says two.\nVerdict: ${verdict}`] }];
    await withModel(answers, async ({ write, run, asked }) => {
      await write("review.yaml", blocks("yaml")[0]!);
      await write("review.sh", blocks("sh")[0]!);
      const [checked, ...lines] = (await run(job)).split("\n");
      assertMatch(checked!, /^review\.yaml: ok/);
      assertEquals(lines, ["file:2 says two.", `Verdict: ${verdict}`, end, ""]);
      assertStringIncludes(asked(1), "+two");
    });
  }
});

Deno.test("the agent with an MCP server pins its tools and calls one", () => {
  const { blocks } = PAGE.section("Tools of an MCP server");
  const answers = [callOf("web__sum", { a: 20, b: 22 }), { text: ["42."] }];
  return onWebServer((url, requests) =>
    withModel(answers, async ({ folder, write, run, asked }) => {
      const { host } = new URL(url);
      const plan = blocks("yaml")[0]!.replace("https://mcp.example.com", url).replace(
        "mcp.example.com",
        host,
      );
      await write("mcp.yaml", plan);
      const printed = await run(blocks("sh")[0]!.replace("MCP_TOKEN=…", "MCP_TOKEN=a-token"));
      assertMatch(printed, /42\.\n$/);
      assertStringIncludes(await Deno.readTextFile(`${folder}/plan.lock.json`), "sum");
      assertStringIncludes(asked(2), "42");
      assertEquals(requests.at(-1)?.headers.get("authorization"), "Bearer a-token");
    })
  );
});

const PINNED = PAGE.section("A tool from its source, pinned");

Deno.test("the tool from its source runs, is locked, and is refused when it changed", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  const here = { cwd: folder, env: { PREAMP_HOME: `${folder}/home` } };
  const [plain, frozen] = PINNED.blocks("sh").flatMap((block) => block.split("\n")).filter((line) =>
    line.includes("run -p shout.yaml")
  ).map(argumentsOf);
  await Deno.writeTextFile(`${folder}/shout.ts`, `${PINNED.blocks("ts ignore")[0]}\n`);
  await Deno.writeTextFile(`${folder}/shout.yaml`, `${PINNED.blocks("yaml")[0]}\n`);
  const valid = await runCommand(["module", "validate", "shout.ts"], here);
  assertEquals([valid.code, valid.stderr], [0, ""], valid.stdout);
  const ran = await runProgram(plain!, here);
  assertEquals([ran.code, ran.stdout], [0, "Done.\n"], ran.stderr);
  assert(ran.stderr.includes("= HELLO!"), ran.stderr);
  const locked = await runCommand(argumentsOf(PINNED.command("plan lock")), here);
  assertEquals(locked.code, 0, locked.stderr);
  const again = await runProgram(frozen!, here);
  assertEquals([again.code, again.stdout], [0, "Done.\n"], again.stderr);
  await Deno.writeTextFile(`${folder}/shout.ts`, `${PINNED.blocks("ts ignore")[0]} // changed\n`);
  const refused = await runProgram(frozen!, here);
  assertEquals([refused.code, refused.stdout], [1, ""]);
  assert(refused.stderr.includes("./shout.ts"), refused.stderr);
});

Deno.test("the plan of the tool is explained before it runs, and compared with a wider one", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  const here = { cwd: folder, env: { PREAMP_HOME: `${folder}/home` } };
  await Deno.writeTextFile(
    `${folder}/shout.ts`,
    `globalThis.ran = 1; throw 1;\n${PINNED.blocks("ts ignore")[0]}\n`,
  );
  await Deno.writeTextFile(`${folder}/shout.yaml`, `${PINNED.blocks("yaml")[0]}\n`);
  await Deno.writeTextFile(`${folder}/wider.yaml`, `${PINNED.blocks("yaml")[1]}\n`);
  const explained = await runCommand(argumentsOf(PINNED.command("plan explain shout")), here);
  assertEquals([explained.code, explained.stderr], [0, ""]);
  for (const text of ["./shout.ts", "sha256-", "--allow-read=./shout.ts", "process"]) {
    assert(explained.stdout.includes(text), text);
  }
  const widened = await runCommand(argumentsOf(PINNED.command("plan diff")), here);
  assertEquals([widened.code, widened.stderr], [1, ""]);
  assertMatch(widened.stdout, /^1 widening change\n\+ tools\[0\]\.permissions\.net$/m);
});

Deno.test("the policy for callers is one that the server takes", async () => {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  await Deno.writeTextFile(`${folder}/preamp.yaml`, PINNED.blocks("yaml")[2]!);
  await using server = await startServer(["--config", "preamp.yaml"], { cwd: folder });
  assertEquals((await server.get("/readyz")).body.ok, true);
});
