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
    else if (/\.(ts|tsx|js|md|yaml)$/.test(name) || path === ".ci/run") {
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

Deno.test("every page that a comment or a text names is in the repository, with the section that it names", () => {
  const wrong: string[] = [];
  for (const { path, text } of FILES) {
    if (path.endsWith(".md") || NOT_OURS.test(path)) continue;
    for (const [index, line] of text.split("\n").entries()) {
      const names = /([\w./-]+\.md)(?:#([\w-]+))?/g;
      const texts = line.match(/src\/docs\/[\w-]+\.md(#[\w-]+)?/g) ?? [];
      for (const [, name = "", anchor] of `${commentOf(path, line)} ${texts.join(" ")}`.matchAll(names)) {
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

Deno.test("every page that a text names as `preamp docs NAME` is there", () => {
  const wrong: string[] = [];
  for (const { path, text } of FILES) {
    if (NOT_OURS.test(path)) continue;
    for (const [, name = ""] of text.matchAll(/preamp docs (?!lists\b)([a-z][a-z-]*)/g)) {
      if (!PATHS.has(`src/docs/${name}.md`) && !PATHS.has(`modules/${name}/README.md`)) {
        wrong.push(`${path} ${name}`);
      }
    }
  }
  assertEquals(wrong, []);
});

/** Files that comments and pages name as examples. */
const EXAMPLES =
  /(^|\/)tool-\w+\/|(^|\/)(mod_test|clock_test|tool|shout|mine|x|y|y_test|y_slow_test|a|b|no)\.ts$|(^|\/)(ID|tool-clock)\.js$/;

Deno.test("every source file that a comment or a page names is in the repository", () => {
  const wrong: string[] = [];
  const paths = [...PATHS];
  for (const { path, text } of FILES) {
    if (NOT_OURS.test(path)) continue;
    const lines = path.endsWith(".md") ? withoutBlocks(text) : text;
    for (const line of lines.split("\n")) {
      const part = path.endsWith(".md") ? line : commentOf(path, line);
      for (const [name] of part.matchAll(/(?<![\w@:/.*{<-])(?:[\w.-]+\/)*[\w.-]+\.(?:ts|js)\b(?![\w(])/g)) {
        const end = name.replace(/^(\.\.?\/)+/, "");
        const known = PATHS.has(end) || paths.some((one) => one.endsWith(`/${end}`)) || EXAMPLES.test(end);
        if (!known) wrong.push(`${path} ${name}`);
      }
    }
  }
  assertEquals(wrong, []);
});

Deno.test("lines of comments end at 110 columns like code, but for tables and URLs", () => {
  const long: string[] = [];
  for (const { path, text } of FILES) {
    if (!/\.[jt]s$/.test(path) || path.startsWith("tests/bench/peers/")) continue;
    for (const [index, line] of text.split("\n").entries()) {
      if (!/^\s*(\/\*\*|\*|\/\/)/.test(line) || /^\s*\* \||https?:\/\//.test(line)) continue;
      if ([...line].length > 110) long.push(`${path}:${index + 1}`);
    }
  }
  assertEquals(long, []);
});

/** Returns the text of the comment in a line of code; empty without one. */
function commentOf(path: string, line: string): string {
  const comment = /\.[jt]sx?$/.test(path)
    ? /^\s*(?:\/?\*+|\/\/)(.*)|\s\/\/ (.*)/.exec(line)
    : /(?:^|\s)#(.*)/.exec(line);
  return comment?.[1] ?? comment?.[2] ?? "";
}

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
