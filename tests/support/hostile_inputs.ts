/**
 * Inputs on which a careless reader takes minutes: tests look at the results, the bench `inputs` at the
 * times.
 */

const MAX = 256 * 1024;

const bomb = [
  "a: &a [x,x,x,x,x,x,x,x,x]",
  ..."bcdefg".split("").map((name, index) => {
    const before = "abcdef"[index];
    return `${name}: &${name} [${Array(7).fill(`*${before}`).join(",")}]`;
  }),
].join("\n");

/** Texts of plans, of the size that a plan may have. */
export const PLAN_TEXTS: Readonly<Record<string, string>> = {
  "an alias bomb": bomb,
  "256 KiB of [": "[".repeat(MAX),
  "256 KiB of {": "{".repeat(MAX),
  "256 KiB of [ after a key": `{"a":${"[".repeat(MAX - 5)}`,
  "one key 40,000 times": "a: 1\n".repeat(40_000),
  "one key 130,000 times in a flow map": `{${"a,".repeat(MAX / 2 - 1)}}`,
  "a JSON key 37,000 times": `{${'"a":1,'.repeat(37_000)}"a":1}`,
  "distinct keys": Array.from({ length: 22_000 }, (_, index) => `key${index}: 1`).join("\n"),
  "a long plain scalar": `a: ${"x".repeat(MAX - 3)}`,
  "a long quoted scalar": `a: "${"\\u0041".repeat(43_000)}"`,
  "a scalar of many lines": `a: ${"x\n ".repeat(80_000)}`,
  "a folded block": `a: >\n${"  x\n\n".repeat(52_000)}`,
  "comments": "#\n".repeat(MAX / 2),
  "documents": "---\n".repeat(MAX / 4),
  "byte order marks": `a: b\n${" \uFEFF\n".repeat(50_000)}`,
  "anchors": Array.from({ length: 15_000 }, (_, index) => `- &a${index} x`).join("\n"),
  "nested properties": Array.from({ length: 30 }, (_, level) => `${" ".repeat(level)}&a${level} k:`).join(
    "\n",
  ),
  "properties on lines of their own": `k:\n${
    Array.from({ length: 30 }, (_, level) => `${" ".repeat(level + 1)}&a${level}\n${" ".repeat(level + 1)}k:`)
      .join("\n")
  }`,
  "flow pairs": `[${"a: b,".repeat(52_000)}]`,
  "complex keys": "? [a, b]\n: c\n".repeat(20_000),
  "blank lines": `a:${"\n".repeat(MAX - 2)}`,
  "tabs": `a:\n${"\t".repeat(MAX - 3)}`,
  "an open quote": `"${"a\n".repeat(MAX / 2 - 1)}`,
  "a long number": `{"a": ${"9".repeat(MAX - 8)}}`,
  "a long key": `${"x".repeat(MAX - 3)}: 1`,
  "an error at the very end": `${"- x\n".repeat(60_000)} bad: [`,
};
/** Code of modules around a declaration: too long, too deep, or slow to read. */
export const MODULE_CODES: Readonly<Record<string, string>> = {
  "assignments without end": `var m={id:1};${"m=".repeat(50_000)}1;${"{m={".repeat(10_000)}`,
  "writes in deep blocks": `var m={id:1};function f(){var m;${"{".repeat(1_000)}${"m=1;".repeat(5_000)}${
    "}".repeat(1_000)
  }}`,
  "lists in lists": `var m={id:${"[".repeat(5_000)}${"]".repeat(5_000)}};`,
  "thousands of names": `let ${Array.from({ length: 30_000 }, (_, index) => `a${index}`)};var m={id:1};`,
  "thousands of exports": `${
    Array.from({ length: 15_000 }, (_, index) => `let a${index};export{a${index}};`).join("")
  };var m={id:1};`,
  "a long chain of members": `var m={id:1};x=a${".b".repeat(50_000)};`,
  "constants that name each other eight times": `var m={id:v0};${
    Array.from({ length: 12 }, (_, index) => `var v${index}=[${`v${index + 1},`.repeat(8)}];`).join("")
  }var v12=1;`,
};

/** Texts of shell commands, of the size that a tool call may have. */
export const SHELL_TEXTS: readonly string[] = [
  "$(",
  "`",
  '"$(',
  "${x:-",
  "a &>",
  "\\`",
  "<(",
  "'\"",
  "(",
  "a;",
  "* ",
].map((piece) => piece.repeat(Math.floor(32_768 / piece.length)));

/** Globs, and texts that they do not match. */
export const GLOBS: Readonly<Record<string, { readonly pattern: string; readonly text: string }>> = {
  "many stars": { pattern: "*a".repeat(127) + "*b", text: "a".repeat(32_768) },
  "one long segment": { pattern: `*${"a".repeat(254)}b`, text: "a".repeat(32_768) },
  "a segment of question marks": { pattern: `*${"?".repeat(254)}b`, text: "a".repeat(32_768) },
};

/** Messages of providers about a request that is too long. */
export const OVERFLOW_MESSAGES: readonly string[] = [
  "context length is 1 tokens ",
  "requested 1 tokens (",
  "1 tokens > ",
  "1".repeat(50),
].map((part) => part.repeat(200_000));

/** Resolves to a file of zeros of this size, compressed with gzip to a thousandth. */
export async function compressedZeros(megabytes: number): Promise<Uint8Array<ArrayBuffer>> {
  let sent = 0;
  const zeros = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull(controller) {
      controller.enqueue(new Uint8Array(1 << 20));
      if (++sent === megabytes) controller.close();
    },
  });
  return await new Response(zeros.pipeThrough(new CompressionStream("gzip"))).bytes();
}
