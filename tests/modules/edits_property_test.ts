/** Edits and patches change the lines that they name, and no other byte, in files of any form. */
import fc from "fast-check";
import { FileError } from "../../modules/files/access.ts";
import { bytesOf, parseTextFile } from "../../modules/files/text_file.ts";
import { edited } from "../../modules/tool-filesystem/edit.ts";
import { parsePatch } from "../../modules/tool-filesystem/patch.ts";
import { updated } from "../../modules/tool-filesystem/update.ts";
import { assert, assertEquals } from "../assert.ts";
import { propertyOptions } from "../support/cases.ts";

/** Lines that are often the same, and often the same but for white space and quotes. */
const line = fc.oneof(
  fc.constantFrom(
    "",
    "}",
    "a",
    "  a",
    "\ta",
    "a  ",
    "b",
    "\tb",
    "    b",
    "\t\tb",
    "end",
    "x = 'y'",
    "x = ’y’",
  ),
  fc.constantFrom("a\u00a0b", "a b", "a  b", "“q”", '"q"', "1 – 2", "1 - 2", "ü", "\rc", "日本"),
  fc.integer({ min: 0, max: 30 }).map((number) => `${"\t".repeat(number % 3)}line ${number}`),
);

interface RandomFile {
  readonly lines: readonly string[];
  /** The end of each line; the last one may have none. */
  readonly ends: readonly string[];
  readonly mark: string;
  readonly encoding: "utf-8" | "utf-16le";
}

const file: fc.Arbitrary<RandomFile> = fc.record({
  lines: fc.array(line, { minLength: 1, maxLength: 14 }),
  kinds: fc.constantFrom(["\n"], ["\r\n"], ["\r"], ["\n", "\r\n"], ["\n", "\n", "\n", "\r\n"]),
  picks: fc.array(fc.nat(3), { minLength: 14, maxLength: 14 }),
  isEnded: fc.boolean(),
  mark: fc.constantFrom("", "\ufeff"),
  isWide: fc.integer({ min: 0, max: 4 }).map((number) => number === 0),
}).map(({ lines, kinds, picks, isEnded, mark, isWide }) => {
  const isCr = kinds[0] === "\r";
  const texts = lines.map((text) => isCr ? text.replaceAll("\r", "") : text);
  // an empty line without an end is no line
  const isOpen = !isEnded && texts.at(-1) !== "";
  return {
    lines: texts,
    ends: texts.map((_, at) => isOpen && at === texts.length - 1 ? "" : kinds[picks[at]! % kinds.length]!),
    mark: isWide ? "\ufeff" : mark,
    encoding: isWide ? "utf-16le" : "utf-8",
  };
});

function encoded({ encoding, mark }: RandomFile, text: string): Uint8Array {
  if (encoding === "utf-8") return new TextEncoder().encode(mark + text);
  const units = new Uint16Array(
    [...mark + text].flatMap((one) => one.split("")).map((one) => one.charCodeAt(0)),
  );
  return new Uint8Array(units.buffer);
}

function textOf({ lines, ends }: Pick<RandomFile, "lines" | "ends">): string {
  return lines.map((one, at) => one + ends[at]).join("");
}

/** Resolves to the text of a file after a change, without its mark; null when the change is refused. */
async function textAfter(
  random: RandomFile,
  change: (parsed: Awaited<ReturnType<typeof parseTextFile>>) => ReturnType<typeof edited>,
): Promise<string | null> {
  const bytes = encoded(random, textOf(random));
  const parsed = await parseTextFile(bytes, "f");
  assertEquals(bytesOf(parsed, "f"), bytes);
  let after: Uint8Array;
  try {
    after = bytesOf(await change(parsed), "f");
  } catch (error) {
    if (error instanceof FileError) return null;
    throw error;
  }
  const text = new TextDecoder(random.encoding, { ignoreBOM: true }).decode(after);
  assert(text.startsWith(random.mark), "the mark is there");
  return text.slice(random.mark.length);
}

/** How a model may write lines that it has read. */
const REMEMBERED: readonly ((text: string) => string)[] = [
  (text) => text,
  (text) => text.trimEnd(),
  (text) => text.replaceAll("\t", "    "),
  (text) => text.replaceAll(/[“”]/g, '"').replaceAll("’", "'").replaceAll("–", "-").replaceAll("\u00a0", " "),
  (text) => text.trim(),
];

const change = fc.record({
  at: fc.nat(13),
  count: fc.nat(4),
  put: fc.array(line, { maxLength: 3 }),
  way: fc.nat(REMEMBERED.length - 1),
  isEnded: fc.boolean(),
});

Deno.test("an edit leaves all bytes outside of the lines that it names", async () => {
  let made = 0;
  await fc.assert(
    fc.asyncProperty(file, change, async (random, { at, count, put, way, isEnded }) => {
      const { lines, ends } = random;
      const from = at % lines.length;
      const to = Math.min(lines.length, from + Math.max(1, count));
      const write = (texts: readonly string[]) => texts.map(REMEMBERED[way]!).join("\n");
      const [old_string, new_string] = [write(lines.slice(from, to)), write(put)];
      const end = isEnded && put.length > 0 ? "\n" : "";
      const edit = { old_string: old_string + end, new_string: new_string + end };
      const after = await textAfter(random, (parsed) => edited(parsed, [edit], "f"));
      if (after === null) return;
      made++;
      // where it was made, no other byte differs: some place of as many lines fits
      const places = lines.map((_, start) => start).filter((start) => {
        const before = textOf({ lines: lines.slice(0, start), ends });
        const rest = { lines: lines.slice(start + to - from), ends: ends.slice(start + to - from) };
        return after.startsWith(before) && after.slice(before.length).endsWith(textOf(rest));
      });
      // an edit of less than a line may be inside of one
      const isPart = lines.some((one) => one.includes(edit.old_string) && one !== edit.old_string);
      assert(places.length > 0 || isPart, JSON.stringify({ edit, after }));
      const kinds = new Set(ends.filter((one) => one !== ""));
      if (kinds.size === 1) {
        const other = after.replaceAll([...kinds][0]!, "");
        assert(!/[\n]/.test(other), JSON.stringify({ edit, after }));
      }
    }),
    propertyOptions(300, 10_000, 100_000),
  );
  assert(made > 0);
});

Deno.test("an edit of part of a line leaves all bytes around it, also beside other edits", async () => {
  await fc.assert(
    fc.asyncProperty(file, fc.nat(13), fc.nat(13), line, async (random, one, other, put) => {
      const { lines, ends } = random;
      const marked = lines.map((text, at) => `${text}<${at}>`);
      const places = [...new Set([one % lines.length, other % lines.length])];
      const edits = places.map((at) => ({ old_string: `<${at}>`, new_string: put }));
      const after = await textAfter({ ...random, lines: marked }, (parsed) => edited(parsed, edits, "f"));
      const expected = lines.map((text, at) => text + (places.includes(at) ? put : `<${at}>`));
      assertEquals(after, textOf({ lines: expected, ends }));
    }),
    propertyOptions(300, 10_000, 100_000),
  );
});

/** A part of a patch: a line is kept, deleted, or followed by a new one. */
const marks = fc.array(fc.constantFrom(" ", " ", " ", "-", "+", "-+"), { minLength: 1, maxLength: 6 });

Deno.test("a patch changes only lines with - and +, in their place, or is refused", async () => {
  let made = 0;
  await fc.assert(
    fc.asyncProperty(
      file,
      fc.nat(13),
      marks,
      fc.nat(13),
      marks,
      fc.nat(REMEMBERED.length - 1),
      async (...given) => {
        const [random, first, one, second, other, way] = given;
        const { lines, ends } = random;
        const written = REMEMBERED[way]!;
        const patch = ["*** Begin Patch", "*** Update File: f"];
        const expected: { text: string; end: string }[] = [];
        let [next, added] = [0, 0];
        const keep = (to: number) => {
          for (; next < to; next++) expected.push({ text: lines[next]!, end: ends[next]! });
        };
        for (const [place, rows] of [[first, one], [second, other]] as const) {
          if (place < next || place >= lines.length) continue;
          keep(place);
          patch.push("@@");
          for (const row of rows) {
            const text = lines[next];
            if (text === undefined) break;
            if (row.startsWith("-")) next++;
            else keep(next + 1);
            patch.push(`${row[0] === "-" ? "-" : " "}${written(text)}`);
            if (row.endsWith("+")) patch.push(`+new ${++added}`);
            if (row.endsWith("+")) expected.push({ text: `new ${added}`, end: "" });
          }
        }
        keep(lines.length);
        patch.push("*** End Patch");
        const [operation] = parsePatch(patch.join("\n"));
        assert(operation?.kind === "update");
        const after = await textAfter(random, (parsed) => updated(parsed, operation.chunks, "f"));
        if (after === null) return;
        made++;
        // new lines are known by their text; their indentation and ends are fitted
        const kept = after.replaceAll(/[ \t]*new \d+(\r\n|\n|\r|$)/g, "");
        const original = expected.filter(({ text }) => !text.startsWith("new "));
        // the end of the file is as it was, so that its last line may have got or lost a line end
        const withoutEnd = (text: string) => text.replace(/(\r\n|\n|\r)$/, "");
        const exact = withoutEnd(original.map(({ text, end }) => text + end).join(""));
        if (way === 0) assertEquals(withoutEnd(kept), exact, patch.join("\n"));
        else { // lines that were remembered in another way may be others: all that is kept is as it was
          let rest = withoutEnd(kept);
          for (const [at, text] of lines.entries()) {
            if (rest.startsWith(text + ends[at])) rest = rest.slice((text + ends[at]).length);
            else if (rest === text) rest = "";
          }
          assertEquals(rest, "", patch.join("\n"));
        }
        const numbers = [...after.matchAll(/new (\d+)/g)].map(([, number]) => Number(number));
        assertEquals(numbers, Array.from({ length: added }, (_, at) => at + 1));
      },
    ),
    propertyOptions(300, 10_000, 100_000),
  );
  assert(made > 0);
});
