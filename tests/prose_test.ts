/** Rules for the text of the repository: plain words, and no reference to a page that is not there. */
import { assertEquals } from "./assert.ts";

const ROOT = new URL("../", import.meta.url);

/** Words that belong to no field and read as riddles; src/docs/glossary.md has the words to use. */
const REFUSED =
  /\b(told|tells|whoever|nobody|(?:is|are) none|anew|(?:goes|go) on|lets? go|put together|stands? in for|somebody else's|ceilings?)\b/i;

/** Texts whose words are not ours: data of tests, and what is written for a model to read. */
const NOT_OURS = /^tests\/fixtures\/|^tests\/bench\/peers\/|^tests\/prose_test\.ts$/;

interface TextFile {
  /** Path from the root. */
  readonly path: string;
  readonly text: string;
}

function* textFiles(folder: string): Generator<TextFile> {
  for (const { name, isDirectory } of Deno.readDirSync(new URL(folder, ROOT))) {
    if (name === "node_modules" || name === "dist" || name === ".git") continue;
    const path = `${folder}${name}`;
    if (isDirectory) yield* textFiles(`${path}/`);
    else if (/\.(ts|tsx|md|yaml)$/.test(name)) {
      yield { path, text: Deno.readTextFileSync(new URL(path, ROOT)) };
    }
  }
}

const FILES = [...textFiles("")];
const PATHS = new Set(FILES.map(({ path }) => path));

Deno.test("the repository uses the words of the glossary", () => {
  const found = FILES.filter(({ path }) => !NOT_OURS.test(path)).flatMap(({ path, text }) =>
    text.split("\n").flatMap((line, index) => {
      const [word] = REFUSED.exec(line) ?? [];
      return word === undefined ? [] : [`${path}:${index + 1} ${word}`];
    })
  );
  assertEquals(found, []);
});

Deno.test("every link of a page leads to a file, and its anchor to a heading", () => {
  const wrong: string[] = [];
  for (const { path, text } of FILES) {
    if (!path.endsWith(".md") || NOT_OURS.test(path)) continue;
    for (const [, href = ""] of withoutBlocks(text).replace(/`[^`\n]*`/g, "").matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(href)) continue;
      const url = new URL(href, new URL(path, "file:///"));
      const target = url.pathname.slice(1);
      if (url.hash && PATHS.has(target)) {
        const page = Deno.readTextFileSync(new URL(target, ROOT));
        if (!headings(page).has(url.hash.slice(1))) wrong.push(`${path} → ${href}`);
      } else if (!exists(target)) wrong.push(`${path} → ${href}`);
    }
  }
  assertEquals(wrong, []);
});

Deno.test("every page that a comment names is in the repository, with the section that it names", () => {
  const wrong: string[] = [];
  for (const { path, text } of FILES) {
    if (!path.endsWith(".ts") || NOT_OURS.test(path)) continue;
    for (const [index, line] of text.split("\n").entries()) {
      if (!/^\s*(\/?\*|\/\/)|\/\/ /.test(line)) continue;
      for (const [, name = "", anchor] of line.matchAll(/([\w./-]+\.md)(?:#([\w-]+))?/g)) {
        const target = [name, `src/docs/${name}`, `${path.replace(/[^/]*$/, "")}${name}`].find((one) =>
          PATHS.has(one)
        );
        const known = target !== undefined &&
          (anchor === undefined || headings(Deno.readTextFileSync(new URL(target, ROOT))).has(anchor));
        if (!known) wrong.push(`${path}:${index + 1} ${name}${anchor ? `#${anchor}` : ""}`);
      }
    }
  }
  assertEquals(wrong, []);
});

function exists(path: string): boolean {
  try {
    Deno.statSync(new URL(path, ROOT));
    return true;
  } catch {
    return false;
  }
}

function withoutBlocks(markdown: string): string {
  return markdown.replace(/^(```+)[^]*?^\1/gm, "");
}

/** Returns the anchors of a page's headings, as GitHub makes them. */
function headings(markdown: string): Set<string> {
  return new Set(
    [...withoutBlocks(markdown).matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
      heading.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").trim().replaceAll(" ", "-")
    ),
  );
}
