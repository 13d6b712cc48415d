import { imageBlock, imageFromBase64, type Message, messageTokens } from "preamp";
import { assert, assertEquals } from "../assert.ts";
import { jpeg, PNG, png, webp } from "../support/images.ts";

Deno.test("imageBlock() recognises PNG, JPEG, GIF and WebP by their bytes", () => {
  const typeOf = (bytes: Uint8Array) => imageBlock(bytes)?.source.media_type;
  const text = (value: string) => new TextEncoder().encode(value);
  assertEquals(typeOf(png(1, 1)), "image/png");
  assertEquals(typeOf(jpeg(1, 1)), "image/jpeg");
  assertEquals(typeOf(text("GIF89a, and more")), "image/gif");
  assertEquals(typeOf(webp(1, 1)), "image/webp");
  for (const other of ["", "GIF", "RIFF....WAVE", "%PDF-1.7", "<svg/>"]) {
    assertEquals(typeOf(text(other)), undefined);
  }
});

Deno.test("imageFromBase64() reads what tools write, and refuses what no model takes", () => {
  const read = (data: string, stated?: string) => imageFromBase64(data, stated)?.source;
  const block = { type: "base64", media_type: "image/png", data: PNG };
  assertEquals(read(PNG), block);
  assertEquals(read(PNG, "image/jpeg"), block); // its bytes decide
  assertEquals(read(`data:image/png;base64,${PNG}`), block);
  assertEquals(read(`${PNG.slice(0, 20)}\r\n ${PNG.slice(20)}\n`), block);
  assertEquals(read("AAAA", "image/JPG")?.media_type, "image/jpeg");
  assertEquals([
    read("AAAA"),
    read("AAAA", "image/svg+xml"),
    read("AAA", "image/png"),
    read("<b>", "image/png"),
  ], [
    undefined,
    undefined,
    undefined,
    undefined,
  ]);
});

Deno.test("messageTokens() counts an image by its size in pixels, not by its bytes", () => {
  const tokens = (bytes: Uint8Array, padding = 0) => {
    const data = new Uint8Array([...bytes, ...new Uint8Array(padding)]).toBase64();
    const source = { type: "base64", media_type: "image/png", data };
    return messageTokens({ role: "user", content: [{ type: "image", source }] } as Message);
  };
  for (const make of [png, jpeg, webp]) {
    const [small, usual, large] = [make(300, 200), make(1_000, 700), make(1_920, 1_080)];
    assert(tokens(small) < tokens(usual) && tokens(usual) < tokens(large), make.name);
    assertEquals(tokens(small, 300_000), tokens(small));
    assert(tokens(large) < 4_000);
  }
});

Deno.test("messageTokens() counts an image that ends before its size as one of unknown size", () => {
  for (const make of [png, jpeg, webp]) {
    const whole = make(300, 200);
    for (let length = 0; length < whole.length; length++) {
      const data = whole.subarray(0, length).toBase64();
      const source = { type: "base64", media_type: "image/png", data };
      const message = { role: "user", content: [{ type: "image", source }] } as Message;
      assert([404, 1_604].includes(messageTokens(message)), `${make.name} of ${length} bytes`);
    }
  }
});
