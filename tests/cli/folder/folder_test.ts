/** Which files of the folder that a command is started in are used, and when. */
import * as fc from "fast-check";
import { NamedPlans } from "../../../src/app/named_plans.ts";
import { SourceOverrides } from "../../../src/app/source_overrides.ts";
import {
  changeSources,
  decidedFolders,
  type FolderUse,
  forgetFolder,
  openFolder,
  trustFolder,
  type UsedFolder,
} from "../../../src/cli/folder/folder.ts";
import { escapeUnprintable } from "../../../src/text/escape.ts";
import { assertEquals, assertMatch, assertRejects, assertStringIncludes } from "../../assert.ts";
import { STRANGE_FILES, type StrangeFolder, strangeFolder } from "../../support/strange_folder.ts";

const ALL: FolderUse = { settings: true, variables: true, sources: true, plans: "all", asks: true };
const NAMES = ["preamp.yaml", ".env", ".preamp/sources.yaml", "plans/default.yaml"];

/** Returns what acts: the texts that are used, the overrides and the plans. */
async function acting({ settings, variables, sources, plans }: UsedFolder) {
  return {
    settings: settings !== null,
    variables: variables !== null,
    sources: sources === null ? [] : [...(await new SourceOverrides([sources], "none").find()).keys()],
    plans: plans === null ? [] : await new NamedPlans([plans]).names(),
  };
}

const NOTHING = { settings: false, variables: false, sources: [], plans: [] };
const EVERYTHING = { settings: true, variables: true, sources: ["hooks-approval"], plans: ["default"] };

Deno.test("openFolder() uses nothing of a folder that is not trusted, and names the files in one line", async () => {
  await using folder = await strangeFolder();
  const used = await openFolder(folder.io(), ALL);
  assertEquals(await acting(used), NOTHING);
  assertEquals(
    used.ignored,
    "Ignored preamp.yaml, .env, .preamp/sources.yaml and plans/default.yaml of this folder, " +
      "which is not trusted: preamp trust shows what they do, and uses them",
  );
});

Deno.test("openFolder() uses what trustFolder() trusted, until a file changes", async () => {
  await using folder = await strangeFolder();
  const { trusted, files } = await trustFolder(folder.url, folder.io());
  assertEquals([trusted, files.length], [true, NAMES.length]);
  const used = await openFolder(folder.io(), ALL);
  assertEquals([await acting(used), used.ignored, [...used.names].sort()], [
    EVERYTHING,
    null,
    [...NAMES].sort(),
  ]);
  for (const name of NAMES) {
    const text = STRANGE_FILES[name]!;
    await folder.write(name, `${text} `);
    const changed = await openFolder(folder.io(), ALL);
    assertStringIncludes(String(changed.ignored), `${name} (changed)`);
    await folder.write(name, text);
    assertEquals((await openFolder(folder.io(), ALL)).ignored, null);
  }
});

Deno.test("openFolder() uses exactly the files whose bytes are trusted, whatever else the folder has", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.subarray(NAMES),
      fc.subarray(NAMES),
      fc.subarray(NAMES),
      async (first, changed, added) => {
        await using folder = await strangeFolder(
          Object.fromEntries(first.map((name) => [name, STRANGE_FILES[name]!])),
        );
        await trustFolder(folder.url, folder.io());
        for (const name of changed.filter((name) => first.includes(name))) {
          await folder.write(name, `${STRANGE_FILES[name]}\n`);
        }
        for (const name of added.filter((name) => !first.includes(name))) {
          await folder.write(name, STRANGE_FILES[name]!);
        }
        const counts = (name: string) => first.includes(name) && !changed.includes(name);
        assertEquals(await acting(await openFolder(folder.io(), ALL)), {
          settings: counts("preamp.yaml"),
          variables: counts(".env"),
          sources: counts(".preamp/sources.yaml") ? ["hooks-approval"] : [],
          plans: counts("plans/default.yaml") ? ["default"] : [],
        });
      },
    ),
    { numRuns: 60 },
  );
});

Deno.test("openFolder() asks a person once what each file would do, and keeps a yes and a no", async () => {
  for (const [key, expected] of [["y", EVERYTHING], ["n", NOTHING]] as const) {
    await using folder = await strangeFolder();
    const io = folder.io({ terminal: true, lines: [key] });
    assertEquals(await acting(await openFolder(io, ALL)), expected);
    for (
      const text of [
        "runs the modules in data: inside this program, with all rights of this",
        'starts "sh -c exit"',
        "sends the prompts of openai to 127.0.0.1:1",
        "sets THEIRS for plans that name them",
        "may not set PREAMP_MODEL",
        "hooks-approval, which asks before calls, by ./mods/inline.ts",
        "May touch nothing outside",
      ]
    ) assertStringIncludes(io.stderr.replaceAll(/\n {4}/g, " "), text);
    assertEquals([io.stderr.includes("theirs"), io.stdout], [false, ""]);
    const later = folder.io({ terminal: true });
    assertEquals([await acting(await openFolder(later, ALL)), later.stderr], [expected, ""]);
  }
});

Deno.test("openFolder() asks again after a change, and says what changed", async () => {
  await using folder = await strangeFolder();
  await openFolder(folder.io({ terminal: true, lines: ["y"] }), ALL);
  await folder.write(".env", "OPENAI_BASE_URL=http://10.0.0.9/\n");
  await folder.write("plans/new.yaml", "tools: []");
  await Deno.remove(`${folder.path}/.preamp/sources.yaml`);
  const io = folder.io({ terminal: true, lines: ["n"] });
  assertEquals(await acting(await openFolder(io, ALL)), {
    ...EVERYTHING,
    variables: false,
    sources: [],
  });
  assertStringIncludes(io.stderr, "Files of this folder have changed since you trusted it");
  assertStringIncludes(io.stderr, "changed: .env\n    sends the prompts of openai to 10.0.0.9");
  assertStringIncludes(io.stderr, "new: plans/new.yaml\n    is not valid");
  assertStringIncludes(io.stderr, "Not there any more: .preamp/sources.yaml");
  assertEquals(io.stderr.includes("preamp.yaml"), false);
});

Deno.test("openFolder() takes no answer that was typed before the question", async () => {
  await using folder = await strangeFolder();
  const io = folder.io({ terminal: true, lines: ["y", "n"], think_ms: 10 });
  const slow = { ...io, monotonic: () => io.stderr.includes("typed before") ? 1e6 * io.stderr.length : 0 };
  assertEquals(await acting(await openFolder(slow, ALL)), NOTHING);
});

Deno.test("openFolder() asks about nothing that the command does not use", async () => {
  await using folder = await strangeFolder();
  const none: FolderUse = { settings: false, variables: false, sources: false, plans: null, asks: true };
  for (const use of [none, { ...none, plans: { name: "other" } }]) {
    const io = folder.io({ terminal: true });
    assertEquals([(await openFolder(io, use)).ignored, io.stderr], [null, ""]);
  }
  const named = await openFolder(folder.io(), { ...none, plans: { name: "default" } });
  assertMatch(String(named.ignored), /^Ignored plans\/default\.yaml of this folder/);
});

Deno.test("PREAMP_TRUST=1 and a host that was given the folder use all of it; another value is refused", async () => {
  await using folder = await strangeFolder();
  for (const env of [{ PREAMP_TRUST: "1" }, { DENO_DEPLOY: "1" }] as Record<string, string>[]) {
    const used = await openFolder(folder.io({ env }), ALL);
    assertEquals([await acting(used), used.ignored], [EVERYTHING, null]);
  }
  assertEquals(await acting(await openFolder(folder.io({ env: { PREAMP_TRUST: "0" } }), ALL)), NOTHING);
  await assertRejects(
    () => openFolder(folder.io({ env: { PREAMP_TRUST: "yes" } }), ALL),
    Error,
    "PREAMP_TRUST",
  );
});

Deno.test("a folder below a trusted one, a copy of it and a link to it are folders of their own", async () => {
  await using folder = await strangeFolder();
  await trustFolder(folder.url, folder.io());
  await Deno.mkdir(`${folder.path}/below`);
  for (const name of ["preamp.yaml", ".env"]) {
    await Deno.copyFile(`${folder.path}/${name}`, `${folder.path}/below/${name}`);
  }
  const in_folder = async (path: string) =>
    await acting(await openFolder({ ...folder.io(), cwd: new URL(`file://${path}/`) }, ALL));
  assertEquals(await in_folder(`${folder.path}/below`), NOTHING);
  await Deno.rename(folder.path, `${folder.path}-moved`);
  assertEquals(await in_folder(`${folder.path}-moved`), NOTHING);
  await Deno.symlink(`${folder.path}-moved`, folder.path);
  assertEquals(await in_folder(folder.path), NOTHING); // the path is the trusted one, the folder is another
});

Deno.test("the linked worktree of a trusted repository is not trusted with it", async () => {
  await using folder = await strangeFolder({ ...STRANGE_FILES, ".git/HEAD": "ref: refs/heads/main\n" });
  await trustFolder(folder.url, folder.io());
  await using worktree = await strangeFolder({ ...STRANGE_FILES, ".git": `gitdir: ${folder.path}/.git\n` });
  assertEquals(await acting(await openFolder(worktree.io({ env: { HOME: folder.home } }), ALL)), NOTHING);
});

Deno.test("files above the folder that a command is started in are not looked at", async () => {
  await using folder = await strangeFolder({ ...STRANGE_FILES, ".git/HEAD": "", "src/a.ts": "" });
  const io = { ...folder.io(), cwd: new URL("src/", folder.url) };
  const used = await openFolder(io, ALL);
  assertEquals([await acting(used), used.ignored], [NOTHING, null]);
  await trustFolder(folder.url, folder.io());
  assertEquals(await acting(await openFolder(io, ALL)), NOTHING);
});

Deno.test("a link is trusted with the bytes behind it, and the question says where it leads", async () => {
  await using folder = await strangeFolder({});
  await Deno.mkdir(`${folder.home}/secrets`);
  const outside = `${folder.home}/secrets/env`;
  await Deno.writeTextFile(outside, "A=1");
  await Deno.symlink(outside, `${folder.path}/.env`);
  await folder.write("real/x.yaml", STRANGE_FILES["plans/default.yaml"]!);
  await Deno.symlink("real", `${folder.path}/plans`);
  const io = folder.io({ terminal: true, lines: ["y"] });
  assertEquals(await acting(await openFolder(io, ALL)), { ...NOTHING, variables: true, plans: ["x"] });
  assertStringIncludes(io.stderr.replaceAll(/\n {4}/g, " "), `a link to ${outside}; sets A for plans`);
  await Deno.writeTextFile(outside, "A=2");
  assertEquals((await acting(await openFolder(folder.io(), ALL))).variables, false);
  await Deno.remove(`${folder.path}/plans`);
  await folder.write("other/x.yaml", "tools: []");
  await Deno.symlink("other", `${folder.path}/plans`);
  assertEquals((await acting(await openFolder(folder.io(), ALL))).plans, []);
});

Deno.test("links into the person's home are not the folder's", async () => {
  await using folder = await strangeFolder({});
  await Deno.mkdir(`${folder.home}/.preamp/plans`, { recursive: true });
  await Deno.writeTextFile(`${folder.home}/.preamp/sources.yaml`, "sources: { tool-x: ./mine.ts }");
  await Deno.writeTextFile(`${folder.home}/.preamp/plans/mine.yaml`, "tools: []");
  await Deno.symlink(`${folder.home}/.preamp`, `${folder.path}/.preamp`);
  await Deno.symlink(`${folder.home}/.preamp/plans`, `${folder.path}/plans`);
  await Deno.symlink(`${folder.home}/.preamp/plans/mine.yaml`, `${folder.path}/preamp.yaml`);
  const used = await openFolder(folder.io({ env: { PREAMP_TRUST: "1" } }), ALL);
  assertEquals([await acting({ ...used, plans: null }), used.names], [NOTHING, []]);
});

Deno.test("in the person's own home a folder brings what any other would; the home itself needs no trust", async () => {
  await using folder = await strangeFolder();
  const io = folder.io({ env: { HOME: folder.path } });
  const used = await openFolder(io, ALL);
  assertEquals(await acting(used), NOTHING);
  assertEquals(used.ignored?.includes("sources.yaml"), false); // ~/.preamp/sources.yaml is the person's own
  const inside = { ...io, cwd: new URL(".preamp/", folder.url) };
  await folder.write(".preamp/plans/own.yaml", "tools: []");
  assertEquals((await acting(await openFolder(inside, ALL))).plans, ["own"]);
});

Deno.test("a relative PREAMP_HOME is refused: each folder would bring its own", async () => {
  await using folder = await strangeFolder({});
  const io = folder.io({ env: { PREAMP_HOME: ".preamp" } });
  await assertRejects(() => openFolder(io, ALL), Error, "must be an absolute path");
});

Deno.test("a plan that changed since it was trusted is not there, until it is trusted again; so is one with another lock", async () => {
  await using folder = await strangeFolder();
  await trustFolder(folder.url, folder.io());
  const { plans } = await openFolder(folder.io(), ALL);
  const named = new NamedPlans([plans!]);
  const text = async () => (await named.find("default"))?.text;
  assertEquals(await text(), STRANGE_FILES["plans/default.yaml"]);
  await folder.write("plans/default.yaml", "tools: [tool-todo]");
  assertEquals([await text(), await named.names()], [undefined, []]);
  await trustFolder(folder.url, folder.io());
  assertEquals(await text(), "tools: [tool-todo]");
  await folder.write("plans/plan.lock.json", "{}");
  assertEquals(await text(), undefined);
  await trustFolder(folder.url, folder.io());
  assertEquals(await text(), "tools: [tool-todo]");
});

Deno.test("a running command uses no override that was not trusted", async () => {
  await using folder = await strangeFolder();
  await trustFolder(folder.url, folder.io());
  const { sources } = await openFolder(folder.io(), ALL);
  const overrides = new SourceOverrides([sources!], "none");
  assertEquals([...(await overrides.find()).keys()], ["hooks-approval"]);
  await folder.write(".preamp/sources.yaml", "sources: { tool-bash: ./x.ts }");
  assertEquals([...(await overrides.find()).keys()], []);
  await trustFolder(folder.url, folder.io());
  assertEquals([...(await overrides.find()).keys()], ["tool-bash"]);
});

Deno.test("changeSources() keeps the trust of a file that was trusted or not there, and gives none to another", async () => {
  const change = (folder: StrangeFolder) =>
    changeSources(folder.io(), () => folder.write(".preamp/sources.yaml", "sources: { tool-mine: ./a.ts }"));
  await using strange = await strangeFolder();
  assertEquals(await change(strange), false);
  assertEquals(await acting(await openFolder(strange.io(), ALL)), NOTHING);
  await using own = await strangeFolder({});
  for (let time = 0; time < 2; time++) {
    assertEquals(await change(own), true);
    assertEquals((await acting(await openFolder(own.io(), ALL))).sources, ["tool-mine"]);
  }
  assertEquals((await decidedFolders(own.io())).map(({ trusted }) => trusted), [[".preamp/sources.yaml"]]);
});

Deno.test("the plans of the settings' own folder are asked about, also outside of the folder", async () => {
  await using folder = await strangeFolder({ "preamp.yaml": "plans: ../home/agents\n" });
  await Deno.mkdir(`${folder.home}/agents`);
  await Deno.writeTextFile(`${folder.home}/agents/theirs.yaml`, "tools: []");
  const before = await openFolder(folder.io(), ALL);
  assertStringIncludes(String(before.ignored), `preamp.yaml and ${folder.home}/agents/theirs.yaml`);
  await trustFolder(folder.url, folder.io());
  assertEquals((await acting(await openFolder(folder.io(), ALL))).plans, ["theirs"]);
  await Deno.writeTextFile(`${folder.home}/agents/more.yaml`, "tools: []");
  assertEquals((await acting(await openFolder(folder.io(), ALL))).plans, ["theirs"]);
});

Deno.test("a pipe, a folder and a file that is too large bring nothing, and nothing waits for them", async () => {
  await using folder = await strangeFolder({ ".env/bin/activate": "" });
  await new Deno.Command("mkfifo", { args: [`${folder.path}/preamp.yaml`] }).output();
  await folder.write(".preamp/sources.yaml", `# ${"x".repeat(1024 * 1024)}`);
  const used = await openFolder(folder.io(), ALL);
  assertEquals(await acting(used), NOTHING);
  assertMatch(String(used.ignored), /^Ignored \.preamp\/sources\.yaml of/);
  await assertRejects(() => trustFolder(folder.url, folder.io()), Error, "more than 1048576 bytes");
});

Deno.test("names and values of files cannot control the terminal", async () => {
  await using folder = await strangeFolder({
    "plans/\x1b[2J\u202e.yaml": "tools: []",
    "preamp.yaml": `model: "openai/\\e[31mx"\nmcp: {servers: {a: {command: ["\\e]52;c;x\\a"]}}}\n`,
  });
  const io = folder.io({ terminal: true, lines: ["n"] });
  await openFolder(io, ALL);
  assertEquals(io.stderr.replaceAll("\n", ""), escapeUnprintable(io.stderr.replaceAll("\n", "")));
  const { ignored } = await openFolder(folder.io(), ALL);
  assertEquals(ignored, escapeUnprintable(String(ignored)));
});

Deno.test("decidedFolders() lists folders with what is trusted now; forgetFolder() forgets one that is gone", async () => {
  await using folder = await strangeFolder();
  const io = folder.io();
  await trustFolder(folder.url, io);
  await folder.write(".env", "A=1");
  const [found, ...others] = await decidedFolders(io);
  assertEquals([found?.folder, found?.untrusted, others], [folder.path, [".env"], []]);
  assertEquals([...found?.trusted ?? []].sort(), NAMES.filter((name) => name !== ".env").sort());
  await Deno.remove(folder.path, { recursive: true });
  assertEquals(await forgetFolder(folder.url, io), { folder: folder.path, known: true });
  assertEquals([await forgetFolder(folder.url, io), await decidedFolders(io)], [
    { folder: folder.path, known: false },
    [],
  ]);
});

Deno.test("a damaged record decides nothing, and without a home nothing is kept", async () => {
  await using folder = await strangeFolder();
  await trustFolder(folder.url, folder.io());
  const records = `${folder.home}/.preamp/trust/`;
  for await (const { name } of Deno.readDir(records)) await Deno.writeTextFile(records + name, "{");
  assertEquals(await acting(await openFolder(folder.io(), ALL)), NOTHING);
  const homeless = (lines: readonly string[]) => folder.io({ terminal: true, lines, env: { HOME: "" } });
  assertEquals(await acting(await openFolder(homeless(["y"]), ALL)), EVERYTHING);
  assertEquals(await acting(await openFolder(homeless(["n"]), ALL)), NOTHING);
  await assertRejects(
    () => trustFolder(folder.url, folder.io({ env: { HOME: "" } })),
    Error,
    "set PREAMP_HOME",
  );
});

Deno.test("a question that is left is asked again, and nothing is used meanwhile", async () => {
  await using folder = await strangeFolder();
  const io = { ...folder.io({ terminal: true }) };
  const left = { ...io, in: { ...io.in, line: () => Promise.resolve(null) } };
  for (let time = 0; time < 2; time++) assertEquals(await acting(await openFolder(left, ALL)), NOTHING);
});
