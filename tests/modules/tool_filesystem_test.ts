import { type JsonObject, MAX_IMAGE_BYTES, type Tool, type ToolResult } from "preamp";
import { modelContent, toToolResult } from "../../src/sdk/tools.ts";
import { TestCoordinator } from "preamp/testing";
import * as filesystem from "../../modules/tool-filesystem/mod.ts";
import { edited } from "../../modules/tool-filesystem/edit.ts";
import { parsePatch } from "../../modules/tool-filesystem/patch.ts";
import { updated } from "../../modules/tool-filesystem/update.ts";
import { bytesOf, newTextFile, parseTextFile } from "../../modules/files/text_file.ts";
import {
  assert,
  assertEquals,
  assertMatch,
  assertRejects,
  assertStringIncludes,
  assertThrows,
} from "../assert.ts";
import { processorTime } from "../support/busy_time.ts";
import { temporaryFolder } from "../support/folder.ts";

interface Files {
  readonly folder: string;
  readonly coordinator: TestCoordinator;
  /** Resolves to the output of a success, which a person is shown. */
  ok(tool: string, input: JsonObject): Promise<string>;
  /** Resolves to the text that the model gets of a success. */
  model(tool: string, input: JsonObject): Promise<string>;
  /** Resolves to the message of a failure. */
  fails(tool: string, input: JsonObject): Promise<string>;
  write(name: string, text: string | Uint8Array): Promise<void>;
  text(name: string): Promise<string>;
  tool(name: string): Tool;
}

/** Mounts the module on a folder `work` beside a file that is not granted. */
async function withFiles(
  use: (files: Files) => Promise<void>,
  config: JsonObject = {},
  write = true,
): Promise<void> {
  await using temporary = await temporaryFolder();
  const folder = `${temporary.path}/work`;
  await Deno.mkdir(folder);
  await Deno.writeTextFile(`${temporary.path}/outside.txt`, "outside");
  const coordinator = new TestCoordinator({
    permissions: { read: [folder], ...(write ? { write: [folder] } : {}) },
  });
  await filesystem.mount(coordinator, config);
  const call = async (name: string, input: JsonObject) => {
    const tool: Tool | undefined = coordinator.tools[name];
    assert(tool, name);
    return toToolResult(await tool.execute(input));
  };
  const succeeded = async (name: string, input: JsonObject) => {
    const result = await call(name, input);
    assert(result.success, JSON.stringify(result));
    return result;
  };
  await use({
    folder,
    coordinator,
    ok: async (name, input) => (await succeeded(name, input)).getSerializedOutput(),
    model: async (name, input) => {
      const content = modelContent(await succeeded(name, input));
      return typeof content === "string" ? content : content.map(({ text }) => text).join("\n");
    },
    fails: async (name, input) => {
      const result = await call(name, input);
      assert(!result.success, JSON.stringify(result));
      return String(result.error?.message);
    },
    write: async (name, text) => {
      await Deno.mkdir(`${folder}/${name}`.replace(/\/[^/]*$/, ""), { recursive: true });
      await Deno.writeFile(
        `${folder}/${name}`,
        typeof text === "string" ? new TextEncoder().encode(text) : text,
      );
    },
    text: (name) => Deno.readTextFile(`${folder}/${name}`),
    tool: (name) => coordinator.tools[name]!,
  });
}

/** Resolves to a text after edits of a file `f`. */
async function editedText(text: string, ...edits: Parameters<typeof edited>[1]): Promise<string> {
  return new TextDecoder().decode(bytesOf(await edited(newTextFile(text), edits, "f"), "f"));
}

/** Resolves to a text after an update of the file `f` by the lines of a patch. */
async function updatedText(text: string, ...lines: string[]): Promise<string> {
  const [operation] = parsePatch(
    ["*** Begin Patch", "*** Update File: f", ...lines, "*** End Patch"].join("\n"),
  );
  assert(operation?.kind === "update");
  return new TextDecoder().decode(bytesOf(await updated(newTextFile(text), operation.chunks, "f"), "f"));
}

Deno.test("read numbers lines, continues with offset, and says how many there are", () =>
  withFiles(async ({ ok, fails, write }) => {
    await write("long.txt", Array.from({ length: 30 }, (_, at) => `line ${at + 1}`).join("\n") + "\n");
    assertEquals(
      await ok("read", { path: "long.txt", offset: 29 }),
      "    29\tline 29\n    30\tline 30\n(lines 29-30 of 30)",
    );
    assertStringIncludes(
      await ok("read", { file_path: "long.txt" }),
      "(lines 1-20 of 30; continue with offset 21)",
    );
    assertStringIncludes(await fails("read", { path: "long.txt", offset: 31 }), "has 30 lines");
    await write("empty", "");
    assertEquals(await ok("read", { path: "empty" }), "empty is empty");
    await write("wide.txt", "é".repeat(100) + "\nnext");
    assertEquals(await ok("read", { path: "wide.txt" }), `     1\t${"é".repeat(40)} […]\n     2\tnext`);
    assertStringIncludes(await fails("read", {}), "path is required");
  }, { max_read_lines: 20, max_line_chars: 40 }));

Deno.test("read stops at its bytes, whatever the lines", () =>
  withFiles(async ({ ok, write }) => {
    await write("bytes.txt", Array.from({ length: 100 }, () => "x".repeat(99)).join("\n"));
    assertStringIncludes(
      await ok("read", { path: "bytes.txt" }),
      "(lines 1-21 of 100; continue with offset 22)",
    );
  }, { max_read_bytes: 2048 }));

Deno.test("read shows images, lists folders, refuses other binary, and names what is near a missing path", () =>
  withFiles(async ({ ok, fails, write, tool }) => {
    await write("dot.png", Uint8Array.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0]));
    const { output, content } = await tool("read").execute({ path: "dot.png" }) as ToolResult;
    assertEquals(output, "dot.png: image/png, 9 bytes");
    assertEquals(content, [{ type: "text", text: output }, {
      type: "image",
      source: { type: "base64", media_type: "image/png", data: "iVBORw0KGgoA" },
    }]);
    await write("large.jpg", Uint8Array.from([0xff, 0xd8, 0xff, ...new Array(MAX_IMAGE_BYTES)]));
    assertStringIncludes(
      await fails("read", { path: "large.jpg" }),
      `at most ${MAX_IMAGE_BYTES} can be shown`,
    );
    await write("sub/a.bin", Uint8Array.from([1, 0, 2]));
    assertStringIncludes(await fails("read", { path: "sub/a.bin" }), "binary file of 3 bytes");
    assertMatch(await ok("read", { path: "." }), /^dot.png 9\nlarge.jpg 3932163\nsub\/$/);
    assertStringIncludes(await fails("read", { path: "sub/b.bin" }), "near it are a.bin");
    assertStringIncludes(await fails("read", { path: "../outside.txt" }), "cannot be read");
  }));

Deno.test("edit replaces what is unique, all against the original, and shows the diff", () =>
  withFiles(async ({ ok, text, write }) => {
    await write("a.ts", "const a = 1;\nconst b = 2;\nconst c = 3;\n");
    const result = await ok("edit", {
      path: "a.ts",
      edits: [{ old_string: "c = 3", new_string: "c = 4" }, { old_string: "a = 1", new_string: "a = 9" }],
    });
    assertEquals(await text("a.ts"), "const a = 9;\nconst b = 2;\nconst c = 4;\n");
    assertStringIncludes(result, "-const a = 1;\n+const a = 9;");
    await ok("edit", { path: "a.ts", old_string: "const", new_string: "let", replace_all: true });
    assertEquals(await text("a.ts"), "let a = 9;\nlet b = 2;\nlet c = 4;\n");
  }));

Deno.test("edit fails with the nearest lines, the places of an ambiguous text, and overlaps", async () => {
  const source = "function one() {\n  return 1;\n}\nfunction two() {\n  return 2;\n}\n";
  const cases: [message: string, ...edits: { old_string: string; new_string: string }[]][] = [
    ["     1\tfunction one() {", { old_string: "function three() {", new_string: "" }],
    ["2 times in f (lines 1, 4)", { old_string: "function", new_string: "" }],
    ["overlaps", { old_string: "return 1;", new_string: "a" }, { old_string: "1;\n}", new_string: "b" }],
    ["change nothing", { old_string: "return 1;", new_string: "return 1;" }],
    ["is empty", { old_string: "", new_string: "x" }],
  ];
  for (const [message, ...edits] of cases) {
    await assertRejects(() => editedText(source, ...edits), Error, message);
  }
});

/** Edits of whole lines that are remembered in another way, and what they make of the file. */
const TOLERANT: Readonly<Record<string, [text: string, old: string, put: string, after: string | RegExp]>> = {
  "white space": ["if (a) {\n\t\treturn  x;   \n}\n", "if (a) {\n  return x;\n}", "done();", "done();\n"],
  "white space at line ends": ["a  \nb\t\nc\n", "a\nb\n", "a\nB\n", "a  \nB\nc\n"],
  "NBSP": ["a\u00a0b\nc\n", "a b\nc", "a b\nC", "a\u00a0b\nC\n"],
  "quotes that go": ["say(“hi” – now)\n", 'say("hi" - now)', "say()", "say()\n"],
  "quotes that stay": ["say “hi”\nnext\n", 'say "hi"\n', 'say "ho"\n', "say “ho”\nnext\n"],
  "quotes that are new": ["say “hi”\n", 'say "hi"', 'say "hi" and "ho"', /another kind of "/],
  "spaces for tabs": [
    "def a():\n\tif x:\n\t\tfoo()\n\treturn 1\n",
    "    if x:\n        foo()\n",
    "    if x:\n        foo()\n        bar()\n            baz()\n",
    "def a():\n\tif x:\n\t\tfoo()\n\t\tbar()\n\t\t\tbaz()\n\treturn 1\n",
  ],
  "no indentation": ["  {\n    a\n  }\n", "{\n  a\n}", "{\n  a\n    b\n}", "  {\n    a\n      b\n  }\n"],
  "half of the indentation": ["  a\n    b\n", " a\n  b", " a\n  b\n   c", "  a\n    b\n      c\n"],
  "an indentation that could be two": [
    "  a\n",
    "    a",
    "    a\n        b",
    /which indentation this line has/,
  ],
  "tabs and spaces": ["\t  a\n", "    a", "      b", /which indentation this line has/],
  "part of a word": [
    "const width = 3;\n",
    "\tid ",
    "\tkey ",
    /not in f\. The nearest lines are:\n {5}1\tconst width/,
  ],
  "part of a line": ["a(b,  c);\n", "b, c", "d", /not in f/],
  "only white space": ["a\n\t\nb\n", "  \n  ", "x", /not in f/],
  "two places": ["a  b\na   b\n", "a b", "", /2 times in f \(lines 1, 2\)/],
  "no line end at the end of the file": ["a\nb", "a\nb\n", "a\nB\n", "a\nB"],
  "a line end only in old_string": ["\ta\nb\n", "  a\n", "  c", /new_string must end with one too/],
  "whole lines that go": ["x\n\ta\ny\n", "  a\n", "", "x\ny\n"],
};

for (const [name, [text, old_string, new_string, after]] of Object.entries(TOLERANT)) {
  Deno.test(`edit finds lines up to ${name}`, async () => {
    const edit = () => editedText(text, { old_string, new_string });
    if (typeof after === "string") assertEquals(await edit(), after);
    else assertMatch((await assertRejects(edit, Error)).message, after);
  });
}

Deno.test("edit leaves the line ends of their places, and finds a text whatever they are", async () => {
  const cases: [text: string, old: string, put: string, after: string][] = [
    ["a\r\nb\r\nc\r\n", "a\nb", "x\ny", "x\r\ny\r\nc\r\n"],
    ["head\r\nb\nc\nd\n", "b\nc", "B\nX\nC", "head\r\nB\nX\nC\nd\n"],
    ["a\nb\n", "a\r\nb", "A\r\nB", "A\nB\n"],
    ["a\rb\r", "a\nb", "A\nX\nB", "A\rX\rB\r"],
    ["\ufeffa\nb", "a\nb", "A\nB", "\ufeffA\nB"],
    ["1\r2\nb\n", "1\r2", "1\r3", "1\r3\nb\n"],
  ];
  for (const [text, old_string, new_string, after] of cases) {
    const file = await parseTextFile(new TextEncoder().encode(text), "f");
    const bytes = bytesOf(await edited(file, [{ old_string, new_string }], "f"), "f");
    assertEquals(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes), after);
  }
  for (
    const [text, old_string] of [["a\r\nb\r\n--\na\nb\n", "a\nb"], ["x\nx\nx\n", "x\nx"], [
      "aaa",
      "aa",
    ]] as const
  ) {
    await assertRejects(() => editedText(text, { old_string, new_string: "y" }), Error, "2 times");
  }
});

Deno.test("replace_all replaces exact places, and refuses a file that would be too large", async () => {
  const all = { old_string: "a", replace_all: true };
  assertEquals(await editedText("a b\na\n", { ...all, new_string: "aa" }), "aa b\naa\n");
  assertEquals(await editedText("aaa", { ...all, old_string: "aa", new_string: "b" }), "ba");
  await assertRejects(
    () => editedText("a".repeat(10_000), { ...all, new_string: "b".repeat(10_000) }),
    Error,
    "The file would have 100000000 characters",
  );
  await assertRejects(
    () => editedText("\ta\n\ta\n", { ...all, old_string: "  a", new_string: "b" }),
    Error,
    "2 times",
  );
});

Deno.test("write keeps encoding, byte order mark and line ends of what it replaces", () =>
  withFiles(async ({ ok, fails, write, text, folder }) => {
    await write("f.cs", "\ufeffusing X;\r\nclass A {}\r\n");
    await ok("read", { path: "f.cs" });
    assertStringIncludes(
      await ok("write", { path: "f.cs", content: "using X;\nclass B {}\n" }),
      "Replaced f.cs (2 lines; byte order mark, CRLF)\n",
    );
    const bytes = () => Deno.readFile(`${folder}/f.cs`);
    const encode = (given: string) => new TextEncoder().encode(given);
    assertEquals(await bytes(), encode("\ufeffusing X;\r\nclass B {}\r\n"));
    await ok("write", { path: "f.cs", content: "\ufeffclass B {}" });
    assertEquals(await bytes(), encode("\ufeffclass B {}"));
    await write("mixed.txt", "a\r\nb\nc\r\n");
    await ok("read", { path: "mixed.txt" });
    await ok("write", { path: "mixed.txt", content: "new\na\nb\nb2\nc\n" });
    assertEquals(await text("mixed.txt"), "new\r\na\r\nb\nb2\nc\r\n");
    await ok("write", { path: "mixed.txt", content: "a\r\nb\r\n" }); // written out, it is meant
    assertEquals(await text("mixed.txt"), "a\r\nb\r\n");
    const latin = Uint8Array.from("café\ntwo\n", (character) => character.charCodeAt(0));
    await write("latin.txt", latin);
    assertEquals(
      await ok("read", { path: "latin.txt" }),
      "     1\tcafé\n     2\ttwo\n(encoded as windows-1252)",
    );
    for (const content of ["caf\ufffd\n", "→\n"]) {
      assertStringIncludes(
        await fails("write", { path: "latin.txt", content }),
        "is encoded as windows-1252",
      );
    }
    assertEquals(await Deno.readFile(`${folder}/latin.txt`), latin);
    await ok("edit", { path: "latin.txt", old_string: "two", new_string: "zwölf" });
    assertEquals((await Deno.readFile(`${folder}/latin.txt`)).at(-4), 0xf6);
    await write("a.bin", new Uint8Array([1, 0, 2]));
    for (const tool of ["write", "edit", "read"]) {
      const input = { path: "a.bin", content: "x", old_string: "a", new_string: "b" };
      assertStringIncludes(await fails(tool, input), "a.bin is not text");
    }
    await write("old-mac.txt", "one\rtwo\r");
    assertEquals(await ok("read", { path: "old-mac.txt" }), "     1\tone\n     2\ttwo");
  }));

Deno.test("the model gets a sentence and at most 40 lines of a change, a person the diff", () =>
  withFiles(async ({ ok, model, write }) => {
    const lines = Array.from({ length: 500 }, (_, at) => `line ${at + 1}\n`);
    await write("long.txt", lines.join(""));
    assertEquals(
      await model("edit", { path: "long.txt", old_string: "line 100\n", new_string: "a\nb\n" }),
      "Edited long.txt\n    97\tline 97\n    98\tline 98\n    99\tline 99\n   100\ta\n   101\tb\n" +
        "   102\tline 101\n   103\tline 102\n   104\tline 103",
    );
    const all = await model("edit", {
      path: "long.txt",
      edits: [{ old_string: "line", new_string: "LINE", replace_all: true }],
    });
    assertEquals(all.split("\n").length, 42);
    assertStringIncludes(all, "(461 more lines around the changes)");
    assertEquals(
      await model("write", { path: "new.txt", content: lines.join("") }),
      "Created new.txt (500 lines)",
    );
    assertEquals(await model("write", { path: "new.txt", content: "one\n" }), "Replaced new.txt (1 line)");
    assertStringIncludes(await ok("write", { path: "new.txt", content: "two\n" }), "\n-one\n+two");
  }));

Deno.test("edit and write refuse a file that changed since it was read", () =>
  withFiles(async ({ ok, fails, write, text }) => {
    await write("a.txt", "one\n");
    await ok("read", { path: "a.txt" });
    await ok("edit", { path: "a.txt", old_string: "one", new_string: "two" });
    await ok("edit", { path: "a.txt", old_string: "two", new_string: "three" }); // its own change is known
    await write("a.txt", "other text\n");
    for (
      const [tool, input] of [["edit", { old_string: "other", new_string: "x" }], ["write", {
        content: "x",
      }]] as const
    ) {
      assertStringIncludes(await fails(tool, { path: "a.txt", ...input }), "has changed since it was read");
    }
    assertEquals(await text("a.txt"), "other text\n");
    await ok("read", { path: "a.txt" });
    await ok("write", { path: "a.txt", content: "x" });
  }));

Deno.test("write creates and replaces, in the grant only", () =>
  withFiles(async ({ ok, fails, text, folder }) => {
    assertStringIncludes(
      await ok("write", { path: "new/deep.txt", content: "a\nb\n" }),
      "Created new/deep.txt (2 lines)",
    );
    assertStringIncludes(await ok("write", { path: "new/deep.txt", content: "a\nc\n" }), "-b\n+c");
    assertEquals(await text("new/deep.txt"), "a\nc\n");
    for (const path of ["../outside.txt", `${folder}/../outside.txt`, "/etc/passwd"]) {
      assertStringIncludes(await fails("write", { path, content: "x" }), "cannot be written");
      assertStringIncludes(
        await fails("edit", { path, old_string: "o", new_string: "x" }),
        "cannot be written",
      );
    }
    assertEquals(await Deno.readTextFile(`${folder}/../outside.txt`), "outside");
  }));

Deno.test("edits of one file at once are all made", () =>
  withFiles(async ({ ok, text, write }) => {
    await write("n.txt", Array.from({ length: 20 }, (_, at) => `<${at}>`).join("\n"));
    await Promise.all(
      Array.from({ length: 20 }, (_, at) =>
        ok("edit", { path: "n.txt", old_string: `<${at}>`, new_string: `[${at}]` })),
    );
    assertEquals(
      await text("n.txt"),
      Array.from({ length: 20 }, (_, at) =>
        `[${at}]`).join("\n"),
    );
  }));

Deno.test("a change is kept for undo before it is made, and the result says when it cannot be", () =>
  withFiles(async ({ coordinator, ok, write }) => {
    const kept: JsonObject[] = [];
    coordinator.registerCapability("session.keep_before", (change: JsonObject) => {
      kept.push(change);
      return kept.length === 2 ? "it is too large" : null;
    });
    await write("a.txt", "old");
    await ok("edit", { path: "a.txt", old_string: "old", new_string: "new" });
    assertStringIncludes(
      await ok("write", { path: "b.txt", content: "b" }),
      "(b.txt cannot be undone: it is too large)",
    );
    assertEquals(kept.map(({ before }) => before), [new TextEncoder().encode("old").toBase64(), null]);
    assertEquals(String(kept[0]?.after_sha256).length, 64);
  }));

Deno.test("preview shows the diff of a call without making it, or why it would be refused", () =>
  withFiles(async ({ coordinator, write, text }) => {
    await write("a.txt", "one\ntwo\n");
    const preview = async (tool: string, input: JsonObject) => await coordinator.tools[tool]!.preview!(input);
    const edit = await preview("edit", { path: "a.txt", old_string: "two", new_string: "2" });
    assertStringIncludes(edit, "Would edit a.txt\n");
    assertStringIncludes(edit, "-two\n+2");
    assertStringIncludes(await preview("write", { path: "c.txt", content: "c" }), "Would create c.txt");
    assertStringIncludes(
      await preview("edit", { path: "a.txt", old_string: "three", new_string: "3" }),
      "not in a.txt",
    );
    assertEquals(await text("a.txt"), "one\ntwo\n");
  }));

Deno.test("glob finds by pattern, newest first, without what .gitignore names and without links", () =>
  withFiles(async ({ ok, write, folder }) => {
    for (const name of ["old.ts", "sub/new.ts", "out/gen.ts", "sub/kept.log", "x.log", ".git/config.ts"]) {
      await write(name, "");
    }
    await write(".gitignore", "out/\n*.log\n");
    await write("sub/.gitignore", "!kept.log\n");
    await Deno.utime(`${folder}/old.ts`, 1, 1);
    await Deno.symlink(`${folder}/..`, `${folder}/up`);
    const left_out = "(ignored (.gitignore, .ignore), so not searched: out/; 1 link not followed)";
    assertEquals(await ok("glob", { pattern: "*.ts" }), `sub/new.ts\nold.ts\n${left_out}`);
    assertStringIncludes(await ok("glob", { pattern: "**/*.log" }), "sub/kept.log\n(");
    assertEquals(
      await ok("glob", { pattern: "sub/*", path: "." }).then((text) => text.split("\n").length),
      3,
    );
    assertEquals(await ok("glob", { pattern: "out/*.ts" }), "out/gen.ts");
    assertStringIncludes(await ok("glob", { pattern: "*", path: "out" }), "out/gen.ts");
    assertEquals(await ok("glob", { pattern: `${folder}/old.ts` }), "old.ts");
    assertEquals(
      await ok("glob", { pattern: "sub/x/*" }),
      "No file matches sub/x/* in .\n(sub/x does not exist)",
    );
    assertStringIncludes(await ok("glob", { pattern: "*.py" }), "No file matches");
    assertStringIncludes(await ok("glob", { pattern: "outside.txt" }), "No file matches");
    assertEquals(await ok("list", {}), ".git/\n.gitignore 11\nold.ts 0\nout/\nsub/\nup (link)\nx.log 0");
  }));

Deno.test("without write no tool can change a file; without read nothing is mounted", async () => {
  await withFiles(
    ({ coordinator }) => {
      assertEquals(Object.keys(coordinator.tools), ["read", "list", "glob"]);
      return Promise.resolve();
    },
    {},
    false,
  );
  await assertRejects(
    () => Promise.resolve(filesystem.mount(new TestCoordinator(), {})),
    Error,
    "grants it no files",
  );
});

Deno.test("apply_patch adds, deletes, updates and moves files, all or none", () =>
  withFiles(async ({ ok, fails, text, write, folder }) => {
    await write("a.txt", "one\ntwo\nthree\nfour\n");
    await write("gone.txt", "x\n");
    await write("from.txt", "a\nb\n");
    const patch = [
      "*** Begin Patch",
      "*** Update File: a.txt",
      "@@ two",
      "-three",
      "+3",
      "*** Add File: new/n.txt",
      "+hello",
      "*** Delete File: gone.txt",
      "*** Update File: from.txt",
      "*** Move to: to.txt",
      " a",
      "-b",
      "+c",
      "*** End Patch",
    ];
    const result = await ok("apply_patch", { patch: patch.join("\n") });
    assertStringIncludes(result, "Edited a.txt");
    assertEquals(await text("a.txt"), "one\ntwo\n3\nfour\n");
    assertEquals([await text("new/n.txt"), await text("to.txt")], ["hello\n", "a\nc\n"]);
    for (const name of ["gone.txt", "from.txt"]) await assertRejects(() => text(name), Deno.errors.NotFound);
    const wrong = patch.with(5, "*** Add File: second.txt").with(3, "-no such line");
    assertStringIncludes(await fails("apply_patch", { patch: wrong.join("\n") }), "does not match a.txt");
    await assertRejects(() => Deno.stat(`${folder}/second.txt`), Deno.errors.NotFound);
    assertStringIncludes(
      await fails("apply_patch", {
        patch: "*** Begin Patch\n*** Delete File: ../outside.txt\n*** End Patch",
      }),
      "cannot be written",
    );
  }, { dialect: "patch" }));

Deno.test("a patch with a line that cannot be read is refused with its number", () => {
  const wrap = (...lines: string[]) => ["*** Begin Patch", ...lines, "*** End Patch"].join("\n");
  for (
    const [patch, message] of [
      ["nothing", "must begin with"],
      ["*** Begin Patch\n*** Add File: a", "must end with"],
      [wrap(), "names no file"],
      [wrap("-a"), "Line 2 of the patch must be"],
      [wrap("*** Add File: a", "text"), "Line 3 of the patch of a new file must begin with +"],
      [wrap("*** Update File: a", "text"), "Line 3 of the patch must begin with"],
    ] as const
  ) assertStringIncludes(assertThrows(() => parsePatch(patch)).message, message);
});

Deno.test("a patch finds hunks in order, at the end of the file, and up to white space", async () => {
  const cases: [text: string, lines: string[], after: string][] = [
    ["a\nb\na\nb\n", ["@@", " a", "-b", "+1", "@@", " a", "-b", "+2"], "a\n1\na\n2\n"],
    ["x\ny\nx\n", ["-x", "+end", "*** End of File"], "x\ny\nend\n"],
    ["  deep(1);  \n", ["-deep(1);", "+flat();"], "  flat();\n"],
    [
      "class A {\n f() {\n  one\n }\n}\n",
      ["@@ class A {", "@@ f() {", "-  one", "+  two"],
      "class A {\n f() {\n  two\n }\n}\n",
    ],
    ["a\n", ["+b"], "a\nb\n"],
  ];
  for (const [text, lines, after] of cases) assertEquals(await updatedText(text, ...lines), after);
});

Deno.test("dialect auto offers apply_patch to models that were trained on it", async () => {
  for (
    const [model, offered] of [["gpt-5.2", "apply_patch"], ["openai/gpt-5", "apply_patch"], [
      "claude-sonnet-5",
      "edit",
    ], ["gpt-4o", "edit"]] as const
  ) {
    const coordinator = new TestCoordinator({ permissions: { read: ["/srv"], write: ["/srv"] } });
    await coordinator.mount("providers", {
      name: "p",
      getInfo: () => ({
        id: "p",
        display_name: "p",
        credential_env_vars: [],
        capabilities: [],
        defaults: { model },
        config_fields: [],
      }),
      listModels: () => Promise.resolve([]),
      complete: () => Promise.reject(new Error("never")),
      parseToolCalls: () => [],
    }, "p");
    await filesystem.mount(coordinator, {});
    assert(offered in coordinator.tools, model);
  }
});

Deno.test("read and edit in a file of 10 MB take at most seconds", () =>
  withFiles(async ({ ok, write, text }) => {
    const line = "0123456789abcdef".repeat(6);
    await write("big.txt", Array.from({ length: 100_000 }, (_, at) => `${at} ${line}`).join("\n"));
    assertStringIncludes(
      await ok("read", { path: "big.txt", offset: 99_999 }),
      "(lines 99999-100000 of 100000)",
    );
    const result = await ok("edit", { path: "big.txt", old_string: "\n50000 ", new_string: "\nfifty " });
    assert(result.length < 2000);
    assert((await text("big.txt")).includes("\nfifty 0123"));
  }));

Deno.test("a file of 1 GiB is read in part, and pipes, devices and huge files are refused in words", () =>
  withFiles(async ({ ok, fails, write, folder }) => {
    await write("huge.txt", "line\n".repeat(2000));
    await Deno.truncate(`${folder}/huge.txt`, 2 ** 30);
    assertStringIncludes(await ok("read", { path: "huge.txt", limit: 2 }), "(lines 1-2 of more than 2001;");
    assertStringIncludes(
      await fails("edit", { path: "huge.txt", old_string: "line", new_string: "" }),
      "has 1073741824 bytes",
    );
    assertStringIncludes(await fails("write", { path: "huge.txt", content: "" }), "has 1073741824 bytes");
    assert((await new Deno.Command("mkfifo", { args: [`${folder}/pipe`] }).output()).success);
    await Deno.symlink("/dev/zero", `${folder}/zero`);
    for (const tool of ["read", "edit", "write"]) {
      const input = { old_string: "a", new_string: "b", content: "c" };
      assertStringIncludes(await fails(tool, { path: "pipe", ...input }), "is a pipe, not a file");
      assertMatch(await fails(tool, { path: "zero", ...input }), /cannot be (?:read|written)/);
    }
  }));

Deno.test("a hard link is replaced, and the file outside keeps its content", () =>
  withFiles(async ({ ok, folder }) => {
    await Deno.link(`${folder}/../outside.txt`, `${folder}/linked.txt`);
    await ok("edit", { path: "linked.txt", old_string: "outside", new_string: "inside" });
    assertEquals(await Deno.readTextFile(`${folder}/../outside.txt`), "outside");
    assertEquals(await Deno.readTextFile(`${folder}/linked.txt`), "inside");
  }));

Deno.test("edits and patches that do not match a large file are refused soon", async () => {
  const line = "const value = compute(argument, 42); // ".repeat(8);
  const text = Array.from({ length: 50_000 }, (_, at) => at + line).join("\n");
  const edit = { old_string: `something else ${line}`, new_string: "x" };
  const edit_ms = await processorTime(() =>
    assertRejects(() => editedText(text, edit), Error, "The nearest lines are")
  );
  const lines = ["@@", ...Array.from({ length: 2_000 }, () => "-same"), "-other", "+x"];
  const patch_ms = await processorTime(() =>
    assertRejects(() => updatedText("same\n".repeat(50_000), ...lines), Error, "does not match")
  );
  assert(edit_ms + patch_ms < 3_000, `${edit_ms} ms, ${patch_ms} ms`);
});
