/** Sources that break a bundler: nested deep, huge, slow, or hungry for memory. */

/** A source, and the name of the file that it is in. */
export interface SourceBomb {
  file: string;
  text: string;
}

const DEPTH = 200_000;

function nested(open: string, close: string, file = "mod.ts", before = "export const mount = "): SourceBomb {
  return { file, text: `${before}${open.repeat(DEPTH)}1${close.repeat(DEPTH)};` };
}

/** Sources on which esbuild itself fails: its stack is too small for them. */
export const DEEP: Readonly<Record<string, SourceBomb>> = {
  parentheses: nested("(", ")"),
  arrays: nested("[", "]"),
  objects: nested("{a:", "}"),
  templates: nested("`${", "}`"),
  elements: nested("<a>", "</a>", "mod.tsx"),
  types: nested("Array<", ">", "mod.ts", "export const mount = 1; type A = "),
  functions: nested("()=>{return ", "}"),
  operators: nested("!", ""),
  blocks: { file: "mod.ts", text: `${"{".repeat(DEPTH)}${"}".repeat(DEPTH)}; export const mount = 1;` },
  patterns: {
    file: "mod.ts",
    text: `const ${"[".repeat(DEPTH)}a${"]".repeat(DEPTH)} = 1; export const mount = a;`,
  },
  members: { file: "mod.js", text: `export const mount = a${".b".repeat(DEPTH)};` },
};

const BYTES = 5_000_000;
/** Statements enough to take long, few enough that all tests of them take seconds. */
const COUNT = 6_000;

/** Imports of packages that a module may not import. */
export const REFUSED: SourceBomb = {
  file: "mod.ts",
  text: `${
    Array.from({ length: COUNT }, (_, index) => `import 'pkg${index}';`).join("")
  }export const mount = 1;`,
};

/** Sources that are large: they are bundled, or refused in time, and keep nothing else waiting. */
export const LARGE: Readonly<Record<string, SourceBomb>> = {
  "a long text": { file: "mod.ts", text: `export const mount = "${"x".repeat(BYTES)}";` },
  "a long comment": { file: "mod.ts", text: `/*${"x".repeat(BYTES)}*/ export const mount = 1;` },
  "many imports of one file": {
    file: "mod.ts",
    text: `${"import './b.ts';".repeat(COUNT)}export const mount = 1;`,
  },
  "many imports": {
    file: "mod.ts",
    text: `${
      Array.from({ length: COUNT }, (_, index) => `import './${index}.ts';`).join("")
    }export const mount = 1;`,
  },
  "many dynamic imports": {
    file: "mod.ts",
    text: `export const mount = 1;${"import(x);".repeat(COUNT)}`,
  },
  // each error quotes the whole line
  "many errors": { file: "mod.ts", text: `export const mount = 1;${"const a = 1;".repeat(COUNT / 6)}` },
  "many exports": {
    file: "mod.ts",
    text: `export const mount = 1${Array.from({ length: COUNT }, (_, index) => `,a${index}=1`).join("")};`,
  },
  "one line of brackets that never close": {
    file: "mod.ts",
    text: `export const mount = 1;${"({[`".repeat(COUNT)}`,
  },
  "a data: URL": {
    file: "mod.ts",
    text: `import text from "data:text/plain,${
      "x".repeat(BYTES / 2)
    }" with { type: "text" }; export const mount = text;`,
  },
};
