import fc from "fast-check";
import { CommandOutput, ShownOutput } from "../../modules/tool-bash/output.ts";
import { assert, assertEquals } from "../assert.ts";

function shown(text: string): string {
  const output = new CommandOutput(1_000_000);
  output.add(new TextEncoder().encode(text));
  return output.unread("output:1");
}

const note = (states: string) => `[progress: ${states} left out; read output:1 to see all]\n`;

Deno.test("unread() shows records that end with carriage returns as lines", () => {
  const texts = {
    "a,b\rc,d\re,f\r": "a,b\nc,d\ne,f",
    "1\r2\r3": "1\n2\n3",
    "1,2\r\r3,4\r\n": "1,2\n\n3,4\n",
    "0,0\r0,0\r": "0,0\n0,0",
    "01/02/2024,5\r02/02/2024,6": "01/02/2024,5\n02/02/2024,6",
    "Step 1/5 compile\rStep 2/5 link": "Step 1/5 compile\nStep 2/5 link",
    "windows\r\nlines\r\r\n": "windows\nlines\n",
    "Loading\r       \rDone\n": "Loading\nDone\n",
    "\rfirst\n": "first\n",
  };
  for (const [text, lines] of Object.entries(texts)) assertEquals(shown(text), lines);
});

Deno.test("unread() shows the last state of a progress bar, and says how many it leaves out", () => {
  const texts: [text: string, lines: string][] = [
    ["10%\r20%\r100%\nend\n", `100%\nend\n${note("2 earlier states")}`],
    ["[###  ] 1.5kB\r[#### ] 20 MB\r", `[#### ] 20 MB\n${note("1 earlier state")}`],
    ["\r⠋ fetch\r⠙ fetch\r⠹ fetch\nok", `⠹ fetch\nok\n${note("2 earlier states")}`],
    ["| wait\r/ wait\r- wait", `- wait\n${note("2 earlier states")}`],
    [
      "Receiving: 50% (1/2)\rReceiving: 100% (2/2)\rReceiving: 100% (2/2), 3 KiB, done.\n",
      `Receiving: 100% (2/2)\nReceiving: 100% (2/2), 3 KiB, done.\n${note("1 earlier state")}`,
    ],
    [
      "a 50%\ra 100%\rb 50%\rb 100%\n",
      `a 100%\nb 100%\n${note("2 earlier states")}`,
    ],
    ["\x1b[2K 3 of 9\x1b[0m\r\x1b[2K 4 of 9\x1b[0m\n", ` 4 of 9\n${note("1 earlier state")}`],
  ];
  for (const [text, lines] of texts) assertEquals(shown(text), lines);
});

Deno.test("unread() takes no line for a progress bar that is longer than one", () => {
  const text = ["10%", "20%"].map((percent) => `${"file ".repeat(250)}${percent}`).join("\r");
  assertEquals(shown(text), text.replace("\r", "\n"));
});

Deno.test("unread() leaves out no text that is no progress, whatever ends its lines", () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b", "1", ",", " ", "x y", "é"), minLength: 1 })
    .filter((text) => text.trim() !== "");
  const lines = fc.array(fc.tuple(word, fc.constantFrom("\r", "\n", "\r\n", "\r\r\n")), { minLength: 1 });
  fc.assert(fc.property(lines, (all) => {
    const text = shown(all.map(([line, end]) => line + end).join(""));
    assertEquals(text.split("\n").filter((line) => line !== ""), all.map(([line]) => line));
  }));
});

Deno.test("unread() of a long output cleans its beginning and its end", () => {
  const bars = Array.from({ length: 20_000 }, (_, at) => `${at} / 20000\r`).join("");
  const text = shown(`start\n${bars}\nend\n`);
  assert(text.length < 500, text);
  assert(text.startsWith("start\n"), text);
  assert(text.includes("bytes left out; read output:1"), text);
  assert(/19999 \/ 20000\nend\n\[progress: \d+ earlier states left out/.test(text), text);
});

Deno.test("ShownOutput shows text without escape sequences and half characters, whatever the chunks are", () => {
  const bytes = new TextEncoder().encode("a\x1b[31mred é 日本\x1b]0;title\x07\x1b[0m\nlast \x1b[");
  for (let size = 1; size <= bytes.length; size++) {
    let text = "";
    const shown = new ShownOutput((piece) => text += piece);
    for (let at = 0; at < bytes.length; at += size) shown.add(bytes.subarray(at, at + size), "stdout");
    shown.end();
    assertEquals(text, "ared é 日本\nlast \x1b[");
  }
});
