import { decodeText, encodeText } from "../../../modules/files/encoding.ts";
import { shownChange } from "../../../modules/files/line_changes.ts";
import { bytesOf, formatOf, parseTextFile, replaced } from "../../../modules/files/text_file.ts";
import { assert, assertEquals, assertRejects, assertThrows } from "../../assert.ts";

/** Returns a text in an encoding that TextEncoder does not have. */
function bytesIn(name: string, text: string): Uint8Array {
  return encodeText(text, { name, mark: [] }, "f");
}

const WESTERN = "Die Öffnungszeiten ändern sich: 20 °C, £5, ½ l – „schön“.\nL’été à l’hôtel, ça va ?\n";
const TEXTS: readonly (readonly [encoding: string, text: string])[] = [
  ["windows-1252", "café\ntwo\n"],
  ["windows-1252", `int x; // © José\n`],
  ["windows-1252", WESTERN],
  ["windows-1251", "Съешь же ещё этих мягких французских булок, да выпей чаю.\n"],
  ["koi8-r", "Функция возвращает количество строк в файле.\n"],
  ["iso-8859-2", "Zażółć gęślą jaźń, powiedział pan Wołodyjowski cicho.\n"],
  ["iso-8859-7", "Καλημέρα κόσμε, αυτό είναι ένα αρχείο δοκιμής.\n"],
  ["shift_jis", "こんにちは世界。これはテスト用のファイルです。\n"],
  ["euc-kr", "안녕하세요 세계. 이것은 테스트 파일입니다.\n"],
  ["utf-16le", "name = value\nüber 😀\n"],
  ["utf-16be", "name = value\r\nüber\r\n"],
];

for (const [name, text] of TEXTS) {
  Deno.test(`decodeText() reads ${name}, and a changed file is written in it: ${text.slice(0, 20).trim()}`, async () => {
    const bytes = bytesIn(name, text);
    assertEquals((await decodeText(bytes))?.text, text);
    const file = await parseTextFile(bytes, "f");
    const changed = await replaced(file, [{ start: 0, end: 0, put: "# one\n" }]);
    assertEquals(
      new TextDecoder(name).decode(bytesOf(changed, "f")).replaceAll("\r", ""),
      `# one\n${text}`.replaceAll("\r", ""),
    );
  });
}

Deno.test("what is no text, or text in an encoding that is not sure, is not read", async () => {
  const binary: readonly (readonly number[])[] = [
    [0x89, 0x50, 0x00, 0xff],
    [1, 0, 2, 0, 3, 0, 4, 0],
    [0xff, 0xfe, 0x00, 0x00, 0x41, 0x00, 0x00, 0x00], // UTF-32
    [0xff, 0xfe, 0x00, 0xd8], // half of a character
    [0xef, 0xbb, 0xbf, 0xff], // UTF-8 only by its mark
    [0x7f, 0x45, 0x4c, 0x46, 0x90],
    [...bytesIn("big5", "中文\n")], // too short to tell from Japanese
    [...bytesIn("windows-1251", "да\n")],
  ];
  for (const bytes of binary) {
    assertEquals(await decodeText(new Uint8Array(bytes)), null);
    await assertRejects(() => parseTextFile(new Uint8Array(bytes), "f"), Error, "not text");
  }
});

Deno.test("a character that the encoding of a file does not have is refused, not replaced", async () => {
  const file = await parseTextFile(bytesIn("windows-1252", WESTERN), "f.txt");
  assertEquals(formatOf(file), "windows-1252");
  for (const put of ["→", "\ufffd", "\ud800"]) {
    const changed = await replaced(file, [{ start: 0, end: 1, put }]);
    assertThrows(() => bytesOf(changed, "f.txt"), Error, "f.txt is encoded as windows-1252, which has no");
  }
});

Deno.test("line ends are those of the place, and a file with only CR has lines", async () => {
  const cases: [before: string, start: number, end: number, put: string, after: string][] = [
    ["a\r\nb\nc\r\n", 2, 3, "B\nX", "a\r\nB\nX\nc\r\n"],
    ["a\r\nb\nc\r\n", 0, 1, "A\nX", "a\r\nb\nc\r\n".replace("a", "A\r\nX")],
    ["a\r\nb\nc\r\n", 0, 5, "a\nnew\nb\nc", "a\r\nnew\r\nb\nc\r\n"],
    ["a\r\nb\nc\r\n", 6, 6, "d\n", "a\r\nb\nc\r\nd\r\n"],
    ["a\rb\r", 2, 3, "B\nX", "a\rB\rX\r"],
    ["10%\r20%\nb\n", 8, 9, "B\nX", "10%\r20%\nB\nX\n"],
    ["a", 1, 1, "\nb", "a\nb"],
    ["", 0, 0, "x\n", "x\n"],
  ];
  for (const [before, start, end, put, after] of cases) {
    const file = await parseTextFile(new TextEncoder().encode(before), "f");
    const changed = await replaced(file, [{ start, end, put }]);
    assertEquals(new TextDecoder().decode(bytesOf(changed, "f")), after);
  }
});

Deno.test("shownChange() is a unified diff for a person, and numbered lines for a model", async () => {
  const lines = Array.from({ length: 30 }, (_, at) => `${at + 1}`);
  const { diff, numbered } = await shownChange([...lines, ""], [...lines.toSpliced(14, 2, "x"), "31"]);
  assertEquals(
    diff,
    "@@ -12,8 +12,7 @@\n 12\n 13\n 14\n-15\n-16\n+x\n 17\n 18\n 19\n" +
      "@@ -28,3 +27,5 @@\n 28\n 29\n 30\n+31\n+\\ No newline at end of file",
  );
  assertEquals(numbered.slice(0, 5), ["    12\t12", "    13\t13", "    14\t14", "    15\tx", "    16\t17"]);
  assertEquals(numbered.slice(-2), ["    29\t30", "    30\t31"]);
  const long = await shownChange(["a"], Array.from({ length: 9_000 }, (_, at) => `${at}`));
  assert(long.diff.endsWith("[… diff cut]"));
});
