import fc from "fast-check";
import type { JsonObject } from "preamp";
import { TestCoordinator } from "preamp/testing";
import * as search from "../../modules/tool-search/mod.ts";
import { Ripgrep } from "../../modules/tool-search/ripgrep.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import { processorTime } from "../support/busy_time.ts";
import { temporaryFolder } from "../support/folder.ts";

type Grep = (input: JsonObject) => Promise<string>;
type Files = Record<string, string | Uint8Array>;

const HAS_RIPGREP = await new Deno.Command("rg", { args: ["--version"], stdout: "null" }).output()
  .then(({ success }) => success, () => false);

/** Mounts the module on a folder with files. A failure is returned as its message after `!`. */
async function withFiles(
  files: Files,
  use: (grep: Grep, folder: string) => Promise<void>,
  { run = false, config = {} }: { run?: string[] | false; config?: JsonObject } = {},
): Promise<void> {
  await using temporary = await temporaryFolder();
  const folder = `${temporary.path}/work`;
  await Deno.mkdir(folder);
  await Deno.writeTextFile(`${temporary.path}/outside.txt`, "needle outside");
  for (const [name, content] of Object.entries(files)) {
    await Deno.mkdir(`${folder}/${name}`.replace(/\/[^/]*$/, ""), { recursive: true });
    await Deno.writeFile(
      `${folder}/${name}`,
      typeof content === "string" ? new TextEncoder().encode(content) : content,
    );
  }
  const coordinator = new TestCoordinator({ permissions: { read: [folder], run } });
  await search.mount(coordinator, config);
  await use(async (input) => {
    const result = await coordinator.tools.grep!.execute(input) as string | { error: { message: string } };
    return typeof result === "string" ? result : `!${result.error.message}`;
  }, folder);
}

/** Registers a test twice: with and without ripgrep. */
function test(
  name: string,
  files: Files,
  body: (grep: Grep, folder: string) => Promise<void>,
  config: JsonObject = {},
): void {
  Deno.test(name, () => withFiles(files, body, { config }));
  Deno.test({
    name: `${name}, with ripgrep`,
    ignore: !HAS_RIPGREP,
    fn: () => withFiles(files, body, { config, run: ["rg"] }),
  });
}

const bytes = (...values: number[]) => Uint8Array.from(values);
const utf16 = (text: string) => {
  const units = [...`\ufeff${text}`].map((unit) => unit.charCodeAt(0));
  return bytes(...units.flatMap((unit) => [unit & 255, unit >> 8]));
};

test("grep shows lines, files or counts, filtered by glob, up to a limit with the next offset", {
  "a.ts": "one\nNeedle 1\n",
  "sub/b.ts": "needle 2\nneedle 3\n",
  "c.md": "needle 4",
}, async (grep) => {
  assertEquals(
    await grep({ pattern: "needle \\d" }),
    "c.md:1:needle 4\nsub/b.ts:1:needle 2\nsub/b.ts:2:needle 3",
  );
  assertEquals(
    await grep({ pattern: "needle", ignore_case: true, glob: "*.ts", output: "files" }),
    "a.ts\nsub/b.ts",
  );
  assertEquals(await grep({ pattern: "needle", output: "count" }), "c.md:1\nsub/b.ts:2");
  const first = await grep({ pattern: "needle", limit: 2 });
  assertStringIncludes(first, "continue with offset 2");
  assertEquals(await grep({ pattern: "needle", limit: 2, offset: 2 }), "sub/b.ts:2:needle 3");
  assertEquals(await grep({ pattern: "needle", offset: 3 }), "There are only 3 results");
  assertEquals(
    await grep({ pattern: "needle", path: "sub/b.ts", limit: 1 }).then((text) => text.split("\n")[0]),
    "sub/b.ts:1:needle 2",
  );
  assertEquals(await grep({ pattern: "absent" }), "Nothing matches absent in .");
  assertStringIncludes(await grep({ pattern: "x", type: "ts" }), "!type: is not known");
});

test("grep shows lines around a match once, and no line after the last", {
  "a.txt": "1\n2\nx\n4\nx\n6\n7\n8\n9\nx\n",
}, async (grep) => {
  assertEquals(
    await grep({ pattern: "x", context: 1 }),
    "a.txt-2-2\na.txt:3:x\na.txt-4-4\na.txt:5:x\na.txt-6-6\n--\na.txt-9-9\na.txt:10:x",
  );
  assertEquals(await grep({ pattern: "^$" }), "Nothing matches ^$ in .");
});

test("grep says what it leaves out: binary and large files, links, and what .gitignore names", {
  ".gitignore": "out\n*.tmp\n",
  "out/a.txt": "needle",
  "b.tmp": "needle",
  ".git/a.txt": "needle",
  "binary.bin": bytes(0, ...new TextEncoder().encode("needle")),
  "large.txt": "needle".padEnd(2000),
  "crlf.txt": "a needle\r\nb\r\n",
}, async (grep, folder) => {
  await Deno.symlink(`${folder}/../outside.txt`, `${folder}/link.txt`);
  await Deno.symlink(`${folder}/..`, `${folder}/up`);
  assertEquals(
    await grep({ pattern: "needle$" }),
    "crlf.txt:1:a needle\n(binary, with a match that is not shown: binary.bin; too large to search: " +
      "large.txt; ignored (.gitignore, .ignore), so not searched: out/, b.tmp; 2 links not followed)",
  );
  for (const path of ["../outside.txt", "link.txt", "up/outside.txt", "/etc"]) {
    assertStringIncludes(await grep({ pattern: "needle", path }), "cannot be read");
  }
}, { max_file_bytes: 1024 });

test("what path or glob names is searched, although .gitignore names it", {
  ".gitignore": "node_modules/\nlogs/*\n*.log\n",
  "node_modules/pkg/index.js": "needle",
  "node_modules/pkg/debug.log": "needle",
  "logs/x.txt": "needle",
  "src/y.log": "needle",
  ".git/config": "needle",
}, async (grep, folder) => {
  const lines = async (input: JsonObject) =>
    (await grep({ pattern: "needle", output: "files", ...input })).split("\n").filter((line) =>
      line[0] !== "("
    );
  assertEquals(
    await grep({ pattern: "needle" }),
    "Nothing matches needle in .\n(ignored (.gitignore, .ignore), so not searched: node_modules/, " +
      "logs/x.txt, src/y.log)",
  );
  const both = ["node_modules/pkg/debug.log", "node_modules/pkg/index.js"];
  assertEquals(await lines({ path: "node_modules/pkg" }), both);
  assertEquals(await lines({ path: "node_modules" }), both);
  assertEquals(await lines({ path: "node_modules/pkg/index.js" }), ["node_modules/pkg/index.js"]);
  assertEquals(await lines({ path: "logs" }), ["logs/x.txt"]);
  assertEquals(await lines({ path: ".git" }), [".git/config"]);
  assertEquals(await lines({ glob: "node_modules/**/*.js" }), ["node_modules/pkg/index.js"]);
  assertEquals(await lines({ glob: "**/node_modules/*/index.js" }), ["node_modules/pkg/index.js"]);
  assertEquals(await lines({ glob: "**/.git/config" }), [".git/config"]);
  assertEquals(await lines({ glob: `${folder}/logs/*` }), ["logs/x.txt"]);
  assertEquals(await lines({ glob: "*.log" }), ["src/y.log"]);
  assertStringIncludes(await grep({ pattern: "needle", glob: "*.log" }), "(these files are ignored");
});

test("a glob names files as in ripgrep: negated, anchored, absolute, with names that have brackets", {
  "app/[id]/page.tsx": "needle",
  "app/i/page.tsx": "needle",
  "b.md": "needle",
  "docs/b.md": "needle",
  "{{name}}/a.txt": "needle",
  "😀.txt": "needle",
}, async (grep, folder) => {
  const files = async (glob: string, path?: string) =>
    (await grep({ pattern: "needle", output: "files", glob, ...path === undefined ? {} : { path } })).split(
      "\n",
    );
  assertEquals(await files("app/[id]/*.tsx"), ["app/[id]/page.tsx", "app/i/page.tsx"]);
  assertEquals(await files("!*.md"), [
    "app/[id]/page.tsx",
    "app/i/page.tsx",
    "{{name}}/a.txt",
    "😀.txt",
  ]);
  assertEquals(await files("!app"), ["b.md", "docs/b.md", "{{name}}/a.txt", "😀.txt"]);
  assertEquals(await files("/*.md"), ["b.md"]);
  assertEquals(await files("./b.md"), ["b.md"]);
  assertEquals(await files("*.md"), ["b.md", "docs/b.md"]);
  assertEquals(await files(`${folder}/docs/**`), ["docs/b.md"]);
  assertEquals(await files(`${folder}/*.md`, "docs"), ["b.md"]);
  assertEquals(await files("docs/"), ["docs/b.md"]);
  assertEquals(await files("../*.md", "docs"), ["b.md"]);
  assertEquals(await files("{{name}}/*"), ["{{name}}/a.txt"]);
  assertEquals(await files("?.txt"), ["{{name}}/a.txt", "😀.txt"]);
  assertEquals(await files("*.ts,*.md"), [
    "No file in . matches the glob *.ts,*.md, so nothing was searched",
    "(for one of several patterns write {a,b})",
  ]);
  assertEquals(await files("docs"), [
    "No file in . matches the glob docs, so nothing was searched",
    "(docs is a folder: docs/** matches its files)",
  ]);
  assertEquals(await files("lib/*.md"), [
    "No file in . matches the glob lib/*.md, so nothing was searched",
    "(lib does not exist)",
  ]);
  assertStringIncludes((await files("/etc/*.conf")).join(), "!/etc cannot be read: only files in");
  assertStringIncludes((await files("../../*.txt")).join(), "cannot be read: only files in");
  assertStringIncludes((await files("*.@(ts|md)")).join(), "write {a,b}");
  assertStringIncludes((await files("!(*.md)")).join(), "begins with !");
  assertStringIncludes((await files("v{1..3}")).join(), "write {1,2,3}");
});

test("a pattern may match several lines, also of CRLF files", {
  "m.ts": "start {\n  x\n}\nstart { x }\n",
  "crlf.ts": "start {\r\n  x\r\n}\r\n",
}, async (grep) => {
  const found = "crlf.ts:1:start {\ncrlf.ts:2:  x\nm.ts:1:start {\nm.ts:2:  x";
  assertEquals(await grep({ pattern: "start \\{\\n\\s+x" }), found);
  assertEquals(await grep({ pattern: "start {\n  x", literal: true }), found);
  assertEquals(await grep({ pattern: "{\\r\\n" }), "crlf.ts:1:start {");
  assertEquals(await grep({ pattern: "\\r$", output: "count" }), "crlf.ts:3");
  assertEquals(
    await grep({ pattern: "(?s)x.*\\}$", path: "m.ts", context: 1 }),
    "m.ts-1-start {\nm.ts:2:  x\nm.ts:3:}\nm.ts:4:start { x }",
  );
  assertEquals(await grep({ pattern: "x[\\s\\S]*?\\}", output: "count" }), "crlf.ts:1\nm.ts:2");
  assertEquals(await grep({ pattern: "x\\s+\\}" }), "m.ts:4:start { x }");
  assertEquals(await grep({ pattern: "{[^}]*x" }), "m.ts:4:start { x }");
});

test("grep reads UTF-16 and other encodings, and \\w is a letter of any language", {
  "utf16.txt": utf16("eine Größe\nzwei"),
  "latin1.txt": bytes(...[..."eine Größe\nzwei"].map((unit) => unit.charCodeAt(0))),
  "utf16_unmarked.txt": utf16("eine Größe\nzwei").slice(2),
  "utf8.txt": "\ufeffeine Größe\nzwei",
}, async (grep) => {
  const all =
    "latin1.txt:1:eine Größe\nutf16.txt:1:eine Größe\nutf16_unmarked.txt:1:eine Größe\nutf8.txt:1:eine Größe";
  for (
    const pattern of [
      "Größe",
      "^eine",
      "Gr\\w+e$",
      "Gr[\\w]+e",
      "Gr.{2}e",
      "\\bGröß",
      "\\<Größe\\>",
      "(?i)GRÖSS|GRÖß",
    ]
  ) {
    assertEquals(await grep({ pattern }), all, pattern);
  }
  assertStringIncludes(await grep({ pattern: "Gr\\W" }), "Nothing matches");
});

test("a pattern takes linear time, and one that cannot be read says why", {
  "a.txt": "a".repeat(100_000) + "!",
  "b.txt": "function () {\n",
}, async (grep) => {
  const took_ms = await processorTime(async () => {
    assertStringIncludes(await grep({ pattern: "(a+)+$" }), "Nothing matches");
  });
  assert(took_ms < 5000, `${took_ms} ms`);
  assertStringIncludes(await grep({ pattern: "[a-z]{0,1000}[XY]" }), "!pattern repeats too much");
  assertStringIncludes(await grep({ pattern: "(unclosed" }), "!pattern cannot be read");
  for (const pattern of ["(?=ahead)", "(?<!back)x", "(?>a)"]) {
    assertStringIncludes(await grep({ pattern }), "!pattern cannot be read: it looks ahead or back");
  }
  assertStringIncludes(await grep({ pattern: "(a)\\1" }), "!pattern cannot be read: it refers to a group");
  assertStringIncludes(await grep({ pattern: "x\\|y" }), "write a|b");
  assertStringIncludes(await grep({ pattern: "a!", literal: true }), "a.txt:1:[…] aaa");
  assertEquals(await grep({ pattern: "function () {", literal: true }), "b.txt:1:function () {");
  assertEquals(await grep({ pattern: "\\(\\) {" }), "b.txt:1:function () {");
});

test("all of a long line is searched, and of its matches only true ones are found", {
  "long.txt": `first needle ${"x ".repeat(700_000)}needle last\nnext`,
}, async (grep) => {
  const found = (pattern: string) => grep({ pattern, output: "count" });
  for (const pattern of ["needle last", "needle last$", "^first", "x needle", "needle.*last$", "\\blast"]) {
    assertEquals(await found(pattern), "long.txt:1", pattern);
  }
  for (const pattern of ["^x", "x$", "^needle", "x \\z", "needle$"]) {
    assertStringIncludes(await found(pattern), "Nothing matches", pattern);
  }
});

test(
  "grep reads neither pipes nor empty files",
  { "a.txt": "needle", "empty.txt": "" },
  async (grep, folder) => {
    assert((await new Deno.Command("mkfifo", { args: [`${folder}/pipe`] }).output()).success);
    assertEquals(await grep({ pattern: "needle" }), "a.txt:1:needle");
    assertStringIncludes(await grep({ pattern: "needle", path: "pipe" }), "neither a file nor a folder");
    assertStringIncludes(await grep({ pattern: "x", glob: "{a" }), "!The pattern {a has a { without }");
    await Deno.mkdir(`${folder}/none`);
    assertStringIncludes(await grep({ pattern: "x", path: "none" }), "There are no files to search in none");
  },
);

test("grep of many blocks keeps the numbers of lines", {
  "a.txt": Array.from({ length: 30_000 }, (_, at) => `line ${at + 1}`).join("\n"),
}, async (grep) => {
  assertEquals(await grep({ pattern: "line (1|29999)$" }), "a.txt:1:line 1\na.txt:29999:line 29999");
  assertEquals(await grep({ pattern: "line 29998", literal: true }), "a.txt:29998:line 29998");
  assertEquals(await grep({ pattern: "line 29998\\nline", output: "count" }), "a.txt:1");
});

test("results that do not fit continue without a gap", {
  "a.txt": Array.from({ length: 300 }, (_, at) => `needle ${at} ${"x".repeat(400)}`).join("\n"),
}, async (grep) => {
  const seen: number[] = [];
  for (let offset: number | null = 0; offset !== null;) {
    const page = await grep({ pattern: "needle", limit: 2000, offset });
    seen.push(...[...page.matchAll(/:needle (\d+)/g)].map(([, number]) => Number(number)));
    const next = /continue with offset (\d+)/.exec(page);
    offset = next && Number(next[1]);
  }
  assertEquals(seen, Array.from({ length: 300 }, (_, at) => at));
});

Deno.test("a search lets timers run, and ends when its call is cancelled", () =>
  withFiles({ "a.txt": "abcdefghij klmnop\n".repeat(400_000) }, async (_grep, folder) => {
    const coordinator = new TestCoordinator({ permissions: { read: [folder] } });
    await search.mount(coordinator, {});
    const stop = new AbortController();
    const context = { id: "c", signal: stop.signal, session_id: "s", progress: () => {} };
    setTimeout(() => stop.abort(new Error("cancelled")), 10);
    await assertRejects(
      () => Promise.resolve(coordinator.tools.grep!.execute({ pattern: "[a-j]+ [k-p]+[0-9]" }, context)),
      Error,
      "cancelled",
    );
  }));

Deno.test("without ripgrep on the machine a plan that grants it searches all the same", () =>
  withFiles({ "a.txt": "needle" }, async (grep) => {
    assertEquals(await grep({ pattern: "needle" }), "a.txt:1:needle");
  }, { run: ["/nowhere/rg"] }));

Deno.test("ripgrep is not started without paths: it would search the working folder", async () => {
  assertEquals(await new Ripgrep("/nowhere/rg").candidates([], ["--regexp", "needle"], undefined), []);
});

const fragment = fc.constantFrom(
  ...[
    "a",
    "b",
    "ab",
    "A",
    "_",
    "1",
    " ",
    "\t",
    "é",
    "É",
    "ß",
    "ſ",
    "K",
    "Ⅷ",
    "٣",
    "\u00a0",
    "\u2028",
    "-",
    "[",
    "]",
    "{",
    "|",
    "/",
  ],
  ...["\n", "\r\n", "\r", "\0", "\ufeff", "😀", "latin:\xe9", "stray:\x80", "cut:\xe2\x82"],
);
/** Texts of bytes: what follows `:` is one byte a character. */
const content = fc.array(fragment, { maxLength: 12 }).map((fragments) =>
  Uint8Array.from(fragments.flatMap((one) => {
    const [, raw] = one.split(":");
    return raw === undefined
      ? [...new TextEncoder().encode(one)]
      : [...raw].map((unit) => unit.charCodeAt(0));
  }))
);
const part = fc.constantFrom(
  ...[
    "a",
    "b",
    "A",
    "é",
    "ß",
    "k",
    "s",
    "1",
    " ",
    ".",
    "^",
    "$",
    "[ab]",
    "[^a]",
    "[^\\w]",
    "[\\w-]",
    "[]a]",
    "[[:alpha:]]",
  ],
  ...[
    "\\w",
    "\\W",
    "\\d",
    "\\D",
    "\\s",
    "\\S",
    "\\b",
    "\\B",
    "\\<",
    "\\>",
    "\\A",
    "\\z",
    "\\pL",
    "\\x61",
    "\\/",
    "\\-",
    "\\|",
  ],
  ...[
    "{",
    "}",
    "(?:a|é)",
    "(?i:k)",
    "(?P<n>b)",
    "[a&&b]",
    "[[]",
    "\\Qa.\\E",
    "|",
    "(?-i)",
    "\\t",
    "[é-ü]",
    "]",
    "-",
    "#",
    "/",
  ],
);
const quantifier = fc.constantFrom("", "", "", "", "*", "+", "?", "{2}", "{0,1}", "{,2}", "+?");
const patterns = fc.array(fc.tuple(part, quantifier), { minLength: 1, maxLength: 4 })
  .map((parts) => parts.map(([one, times]) => one + times).join(""));

Deno.test({
  name: "with ripgrep the results are the same, for any pattern and any bytes",
  ignore: !HAS_RIPGREP,
  fn: () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(content, { minLength: 1, maxLength: 5 }),
        fc.array(fc.record({ pattern: patterns, ignore_case: fc.boolean() }), { minLength: 5, maxLength: 5 }),
        async (contents, inputs) => {
          const files = Object.fromEntries(contents.map((bytes, index) => [`${index}.txt`, bytes]));
          await withFiles(files, async (grep, folder) => {
            const coordinator = new TestCoordinator({ permissions: { read: [folder], run: ["rg"] } });
            await search.mount(coordinator, {});
            for (const input of inputs) {
              const result = await coordinator.tools.grep!.execute(input) as string | JsonObject;
              if (typeof result === "string") assertEquals(result, await grep(input), JSON.stringify(input));
            }
          });
        },
      ),
      { numRuns: 60 },
    ),
});
