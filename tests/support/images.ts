/** Images for tests: the beginnings of files, with their size in pixels. */

/** A whole PNG of one pixel, in base64. */
export const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/** Returns the beginning of a PNG. */
export function png(width: number, height: number): Uint8Array {
  const bytes = Uint8Array.fromBase64(PNG);
  const view = new DataView(bytes.buffer);
  view.setUint32(16, width);
  view.setUint32(20, height);
  return bytes;
}

/** Returns the beginning of a JPEG: a segment of a preview, and the start of the frame. */
export function jpeg(width: number, height: number): Uint8Array {
  const preview = [0xff, 0xe1, 0x01, 0x02, ...new Array<number>(0x100).fill(0xff)];
  const frame = [0xff, 0xc2, 0, 11, 8, height >> 8, height & 255, width >> 8, width & 255, 1, 1, 0x11, 0];
  return Uint8Array.from([0xff, 0xd8, ...preview, 0xff, ...frame, 0xff, 0xda]);
}

/** Returns the beginning of a WebP in the extended format. */
export function webp(width: number, height: number): Uint8Array {
  const uint24 = (value: number) => [value & 255, (value >> 8) & 255, value >> 16];
  const text = (value: string) => [...new TextEncoder().encode(value)];
  const size = [...uint24(width - 1), ...uint24(height - 1)];
  return Uint8Array.from([
    ...text("RIFF"),
    22,
    0,
    0,
    0,
    ...text("WEBPVP8X"),
    10,
    0,
    0,
    0,
    0,
    0,
    0,
    0,
    ...size,
  ]);
}
