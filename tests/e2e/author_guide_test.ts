/**
 * src/docs/modules.md as an author would follow it: every file saved, every command run, in order; every
 * example validated.
 */
import { assert, assertEquals, assertMatch } from "../assert.ts";
import { programsIn } from "./page.ts";
import { ROOT, runCommand, runProgram } from "./program.ts";
import { shell } from "./shell.ts";
import { inFolder } from "../support/folder.ts";

const GUIDE = await Deno.readTextFile(`${ROOT}src/docs/modules.md`);
const PUBLISHED = "https://modules.example.com/";

interface Block {
  language: string;
  text: string;
}

/** Returns the fenced blocks of the guide, in order. */
function blocks(): Block[] {
  const fenced = GUIDE.split(/^```/m).filter((_, index) => index % 2 === 1);
  return fenced.map((block) => {
    const end = block.indexOf("\n");
    return { language: block.slice(0, end).split(" ")[0]!, text: block.slice(end + 1).trim() };
  });
}

function idOf({ text }: Block): string | undefined {
  return /^\/\*\* `([a-z-]+)`:/.exec(text)?.[1];
}

/** Modules of the guide, each as it would be a `mod.ts`. */
const EXAMPLES = blocks().filter(({ language, text }) => language === "ts" && text.startsWith("/**"));

/** A server of the files that were published. */
function serveFolder(folder: string): { url: string; stop(): Promise<void> } {
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const name = decodeURIComponent(new URL(request.url).pathname.slice(1));
    const bytes = await Deno.readFile(`${folder}/${name}`).catch(() => null);
    return bytes ? new Response(bytes) : new Response("no such file", { status: 404 });
  });
  return { url: `http://127.0.0.1:${server.addr.port}/`, stop: () => server.shutdown() };
}

Deno.test("src/docs/modules.md leads from an empty folder to a locked module at a URL; all its modules type-check", () =>
  inFolder(async (folder) => {
    const [module, test] = blocks().filter(({ language }) => language === "ts");
    const [plan, url_plan] = blocks().filter(({ language }) => language === "yaml");
    const commands = blocks().filter(({ language }) => language === "sh").map(({ text }) => text);
    assert(module && test && plan && url_plan);
    assertEquals(commands.length, 6);
    const work = `${folder}/work`;
    await Deno.mkdir(work);
    const server = serveFolder(`${work}/public`);
    try {
      const bin = await programsIn(folder);
      const run = (index: number) => {
        const text = commands[index]!.replaceAll(PUBLISHED, server.url).split("\n")
          .map((line) => `(${line}) 2>&1`).join(" && ");
        return shell(`PATH='${bin}':$PATH\nexport NO_COLOR=1 PREAMP_HOME='${folder}/home'\n${text}`, {
          cwd: work,
        });
      };

      assertMatch(await run(0), /tool-dice is ready/);
      await Deno.writeTextFile(`${work}/tool-dice/mod.ts`, `${module.text}\n`);
      await Deno.writeTextFile(`${work}/tool-dice/mod_test.ts`, `${test.text}\n`);
      // `deno test` checks types: those of the examples too
      for (const block of EXAMPLES) {
        await Deno.writeTextFile(`${work}/tool-dice/example_${idOf(block)}_test.ts`, `${block.text}\n`);
      }
      const tested = await run(1);
      for (const block of EXAMPLES) await Deno.remove(`${work}/tool-dice/example_${idOf(block)}_test.ts`);
      assertMatch(tested, /13 passed \| 0 failed/);
      assertMatch(tested, /^tool-dice: ok {2}sha256-/m);
      await Deno.writeTextFile(`${work}/plan.yaml`, plan.text);
      assertMatch(await run(2), /The dice are cast\./);
      assertMatch(await run(3), /tool-dice@1\.0\.0\.js: \d+ bytes from 2 files/);
      const hashed = await run(4);
      assertMatch(hashed, /^sha256-[\w+/]{43}=\n/);
      assertMatch(hashed, /^tool-dice: ok/m);
      await Deno.writeTextFile(`${work}/url.yaml`, url_plan.text.replaceAll(PUBLISHED, server.url));
      const locked = await run(5);
      assertMatch(locked, /The dice are cast\./);
      assert(locked.includes(hashed.split("\n")[0]!.slice(0, 20)), "explain shows the digest");

      const published = `${work}/public/tool-dice@1.0.0.js`;
      await Deno.writeTextFile(published, (await Deno.readTextFile(published)).replace("most", "MOST"));
      const elsewhere = { cwd: work, env: { PREAMP_HOME: `${folder}/elsewhere` } }; // here the locked bytes are cached
      const flipped = await runProgram(["run", "-p", "url.yaml", "--frozen", "Roll"], elsewhere);
      assert(flipped.code !== 0, "a changed byte stops the run");
      assertMatch(flipped.stderr, /tool-dice@1\.0\.0\.js/);
    } finally {
      await server.stop();
    }
  }));

for (const block of EXAMPLES) {
  const id = idOf(block);
  Deno.test(`src/docs/modules.md shows a ${id} that validates`, () =>
    inFolder(async (folder) => {
      assert(id);
      await Deno.mkdir(`${folder}/${id}`);
      await Deno.writeTextFile(`${folder}/${id}/mod.ts`, `${block.text}\n`);
      const config = JSON.stringify(id === "provider-plain" ? { url: "https://llm.example.com/" } : {});
      const args = ["module", "validate", "-o", "json", "--module-config", config, id];
      const { code, stdout, stderr } = await runCommand(args, { cwd: folder });
      const report = JSON.parse(stdout);
      assertEquals([code, report.id], [0, id], stdout + stderr);
      const found = [...report.checks, ...report.suite].filter(({ passed }: { passed: boolean }) => !passed);
      assertEquals(found.map(({ name }: { name: string }) => name), ["module_tests"]); // it stands alone here
      assert(report.suite.length >= 8);
    }));
}
