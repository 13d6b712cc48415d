import { EXIT } from "../../../src/cli/errors.ts";
import { cli } from "../../../src/cli/mod.ts";
import { assert, assertEquals, assertStringIncludes } from "../../assert.ts";
import { fakeIo } from "../../support/io.ts";
import { temporaryFolder } from "../../support/folder.ts";

const SECRET = "sk-ant-0123456789-secret";

interface Answer {
  code: number;
  out: string;
  err: string;
}

/** Calls `body` with a function that runs commands in a new home folder. */
async function inHome(
  body: (preamp: (...words: string[]) => Promise<Answer>) => Promise<void>,
): Promise<void> {
  await using temporary = await temporaryFolder();
  const folder = temporary.path;
  const env = { PREAMP_HOME: folder, ANTHROPIC_API_KEY: SECRET };
  await body(async (...words) => {
    const io = fakeIo({ env, cwd: new URL(`file://${folder}/`) });
    return { code: await cli(words, io), out: io.stdout, err: io.stderr };
  });
}

Deno.test("store migrate creates the default store; store check and store vacuum report on it", () =>
  inHome(async (preamp) => {
    for (const command of ["check", "vacuum"]) { // the second one too: the first creates no file
      const { code, err } = await preamp("store", command);
      assertEquals(code, EXIT.usage);
      assertStringIncludes(err, "there is no such file; preamp store migrate creates it");
    }
    const created = await preamp("store", "migrate");
    assertEquals(created, { code: EXIT.done, out: "from version 0 to 2\n", err: "" });
    const again = await preamp("store", "migrate", "--json");
    assertEquals(JSON.parse(again.out), { from: 2, to: 2 });
    const { code, out } = await preamp("store", "check", "--json");
    const { bytes, ...rest } = JSON.parse(out);
    assertEquals([code, rest], [0, { problems: [], version: 2, records: 0, logs: 0, entries: 0 }]);
    assert(bytes > 0);
    assertEquals((await preamp("store", "vacuum")).out, `${bytes} bytes before, ${bytes} bytes after\n`);
  }));

Deno.test("store erase deletes the content of one namespace, with --yes only", () =>
  inHome(async (preamp) => {
    assertStringIncludes((await preamp("store", "erase", "--namespace", "x")).err, "there is no such file");
    assertEquals((await preamp("run", "--session", "new", "hi")).code, EXIT.done);
    const listed = async () => JSON.parse((await preamp("runs", "--json")).out).data.length;
    const erase = async (...words: string[]) => {
      const { code, out, err } = await preamp("store", "erase", "--json", ...words);
      return code === EXIT.done ? JSON.parse(out) : err;
    };
    assertStringIncludes(await erase(), "name what to erase with --namespace NAME");
    assertEquals(await erase("--namespace", "other", "--yes"), { runs: 0, sessions: 0, erased: true });
    assertEquals(await listed(), 1);
    assertEquals(await erase("--namespace", "local"), { runs: 1, sessions: 1, erased: false });
    assertEquals(await listed(), 1);
    assertEquals(await erase("--namespace", "local", "--yes"), { runs: 1, sessions: 1, erased: true });
    assertEquals(await listed(), 0);
  }));

Deno.test("store commands refuse memory, files of other programs, and a name without --store", () =>
  inHome(async (preamp) => {
    for (
      const [words, reason] of [
        [["check", "--store", "memory"], "Cannot find the store: name one with --store"],
        [["check", "--store", "sqlite:/dev/null/x"], "Cannot use the store sqlite:/dev/null/x: "],
        [["vacuum", "sqlite:x"], "write --store sqlite:x"],
      ] as const
    ) {
      const { code, err } = await preamp("store", ...words);
      assertEquals(code, EXIT.usage);
      assertStringIncludes(err, reason);
      assert(!err.includes("memory to keep nothing"), err); // of commands that can run without a store
    }
  }));

Deno.test("store check exits 1 for a store that is too damaged to be opened", () =>
  inHome(async (preamp) => {
    await using temporary = await temporaryFolder();
    const path = `${temporary.path}/store.db`;
    const store = `sqlite:${path}`;
    assertEquals((await preamp("store", "migrate", "--store", store)).code, EXIT.done);
    await Deno.truncate(path, 4096 + 100);
    const { code, out } = await preamp("store", "check", "--store", store);
    const facts = "version 0, 0 records, 0 logs with 0 entries, 0 bytes";
    assertEquals([code, out], [EXIT.failed, `damage: database disk image is malformed\n${facts}\n`]);
  }));

Deno.test("doctor describes the host, names variables and never their values", () =>
  inHome(async (preamp) => {
    const { code, out } = await preamp("doctor", "--json");
    const report = JSON.parse(out);
    assertEquals([code, report.store], [report.ok ? 0 : 1, { kind: "sqlite", ok: true }]);
    const anthropic = report.variables.find(({ name }: { name: string }) => name === "ANTHROPIC_API_KEY");
    assertEquals([anthropic.set, out.includes(SECRET)], [true, false]);
    const memory = await preamp("doctor", "--store", "memory");
    assertEquals(memory.code, EXIT.failed);
    assertStringIncludes(memory.out, "warning: Runs and sessions end with the process");
    const gone = await preamp("doctor", "--store", "sqlite:/dev/null/x");
    assertEquals(gone.code, EXIT.failed);
    assertStringIncludes(gone.out, "warning: Cannot use the store sqlite:/dev/null/x: ");
  }));
