import type { JsonObject } from "preamp";
import { TestCoordinator } from "preamp/testing";
import * as search from "../../modules/tool-search/mod.ts";
import { assert, assertEquals, assertRejects, assertStringIncludes } from "../assert.ts";
import { processorTime } from "../support/busy_time.ts";
import { temporaryFolder } from "../support/folder.ts";

type Grep = (input: JsonObject) => Promise<string>;

/** Mounts the module on a folder with files. A failure is returned as its message after `!`. */
async function withFiles(
  files: Record<string, string | Uint8Array>,
  use: (grep: Grep, folder: string) => Promise<void>,
  config: JsonObject = {},
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
  const coordinator = new TestCoordinator({ permissions: { read: [folder] } });
  await search.mount(coordinator, config);
  await use(async (input) => {
    const result = await coordinator.tools.grep!.execute(input) as string | { error: { message: string } };
    return typeof result === "string" ? result : `!${result.error.message}`;
  }, folder);
}

Deno.test("grep shows lines, files or counts, filtered by glob, up to a limit with the next offset", () =>
  withFiles(
    { "a.ts": "one\nNeedle 1\n", "sub/b.ts": "needle 2\nneedle 3\n", "c.md": "needle 4" },
    async (grep) => {
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
      assertEquals(
        await grep({ pattern: "needle", path: "sub/b.ts", limit: 1 }).then((text) => text.split("\n")[0]),
        "sub/b.ts:1:needle 2",
      );
      assertStringIncludes(await grep({ pattern: "absent" }), "Nothing matches absent in .");
    },
  ));

Deno.test("grep shows lines around a match once", () =>
  withFiles({ "a.txt": "1\n2\nx\n4\nx\n6\n7\n8\n9\nx\n" }, async (grep) => {
    assertEquals(
      await grep({ pattern: "x", context: 1 }),
      "a.txt-2-2\na.txt:3:x\na.txt-4-4\na.txt:5:x\na.txt-6-6\n--\na.txt-9-9\na.txt:10:x\na.txt-11-",
    );
  }));

Deno.test("grep leaves out binary and large files, links, .git and what .gitignore names", () =>
  withFiles({
    ".gitignore": "out\n",
    "out/a.txt": "needle",
    ".git/a.txt": "needle",
    "binary.bin": Uint8Array.from([0, ...new TextEncoder().encode("needle")]),
    "large.txt": "needle".padEnd(2000),
    "crlf.txt": "a needle\r\nb\r\n",
  }, async (grep, folder) => {
    await Deno.symlink(`${folder}/../outside.txt`, `${folder}/link.txt`);
    await Deno.symlink(`${folder}/..`, `${folder}/up`);
    assertEquals(
      await grep({ pattern: "needle$" }),
      "crlf.txt:1:a needle\n(1 files are too large and were left out)",
    );
    for (const path of ["../outside.txt", "link.txt", "up/outside.txt", "/etc"]) {
      assertStringIncludes(await grep({ pattern: "needle", path }), "cannot be read");
    }
  }, { max_file_bytes: 1024 }));

Deno.test("a pattern takes linear time, and one that cannot be read says so", () =>
  withFiles({ "a.txt": "a".repeat(100_000) + "!" }, async (grep) => {
    const took_ms = await processorTime(async () => {
      assertStringIncludes(await grep({ pattern: "(a+)+$" }), "Nothing matches");
    });
    assert(took_ms < 5000, `${took_ms} ms`);
    assertStringIncludes(await grep({ pattern: "[a-z]{0,1000}[XY]" }), "!pattern repeats too much");
    assertStringIncludes(await grep({ pattern: "(unclosed" }), "!pattern cannot be read");
    assertStringIncludes(await grep({ pattern: "(?=ahead)" }), "!pattern cannot be read");
    assertStringIncludes(await grep({ pattern: "a!", literal: true }), "a.txt:1:[…] aaa");
  }));

Deno.test("grep reads neither pipes nor empty files", () =>
  withFiles({ "a.txt": "needle", "empty.txt": "" }, async (grep, folder) => {
    assert((await new Deno.Command("mkfifo", { args: [`${folder}/pipe`] }).output()).success);
    assertEquals(await grep({ pattern: "needle" }), "a.txt:1:needle");
    assertStringIncludes(await grep({ pattern: "needle", path: "pipe" }), "neither a file nor a folder");
    assertStringIncludes(await grep({ pattern: "x", glob: "{a" }), "!The pattern {a has a { without }");
  }));

Deno.test("grep of many blocks keeps the numbers of lines", () =>
  withFiles(
    { "a.txt": Array.from({ length: 30_000 }, (_, at) => `line ${at + 1}`).join("\n") },
    async (grep) => {
      assertEquals(await grep({ pattern: "line (1|29999)$" }), "a.txt:1:line 1\na.txt:29999:line 29999");
      assertEquals(await grep({ pattern: "line 29998", literal: true }), "a.txt:29998:line 29998");
    },
  ));

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
