/** Files and pictures that go along with a prompt. */
import { type ChosenFile, readAttachment } from "../../../src/server/page/app/state/attachments.ts";
import { assert, assertEquals, assertRejects } from "../../assert.ts";

function fileOf(name: string, bytes: Uint8Array<ArrayBuffer>, size = bytes.length): ChosenFile {
  return { name, size, arrayBuffer: () => Promise.resolve(bytes.buffer) };
}

const read = (file: ChosenFile, side = 600) => readAttachment(file, () => Promise.resolve(side));
const PNG = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 1, 2, 3, 4]);

Deno.test("a picture is one by its first bytes, and costs by its longest side", async () => {
  const { block, tokens, bytes } = await read(fileOf("notes.txt", PNG));
  assertEquals([block.type, (block.source as { media_type: string }).media_type, tokens, bytes], [
    "image",
    "image/png",
    1_600,
    12,
  ]);
  assertEquals((block.source as { data: string }).data, PNG.toBase64());
  const sides: [side: number, tokens: number][] = [[512, 400], [513, 1_600], [1_101, 3_000], [
    Infinity,
    3_000,
  ]];
  for (const [side, tokens] of sides) assertEquals((await read(fileOf("a.png", PNG), side)).tokens, tokens);
});

Deno.test("a text goes along with its name", async () => {
  const { block, tokens } = await read(fileOf("a.png", new TextEncoder().encode("é line\n")));
  assertEquals([block, tokens], [{ type: "text", text: "The file a.png:\n\né line\n" }, 2]);
});

Deno.test("what cannot be sent is refused with the reason", async () => {
  const reasons: [file: ChosenFile, reason: RegExp][] = [
    [fileOf("a.zip", new Uint8Array([0x50, 0x4b, 0, 4])), /a\.zip: it is neither text/],
    [fileOf("b", new Uint8Array([0xff, 0xfe])), /neither text/],
    [fileOf("c.txt", new Uint8Array(300_000).fill(97)), /texts may have 262144/],
    [fileOf("d.png", PNG, 4_000_000), /pictures may have/],
  ];
  for (const [file, reason] of reasons) {
    const error = await assertRejects(() => read(file), Error);
    assert(reason.test(String(error)), String(error));
  }
});
