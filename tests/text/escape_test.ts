import { assertEquals } from "../assert.ts";
import {
  escapeAndTruncate,
  escapeHtml,
  escapeUnprintable,
  hasControl,
  hasSpace,
  quoteTruncated,
} from "../../src/text/escape.ts";

Deno.test("escapeUnprintable() escapes control, format and separator characters and lone surrogates", () => {
  assertEquals(
    escapeUnprintable("a\u001b[31m\n\u202e\u2028\u{e0001}\ud800é😀"),
    String.raw`a\u001b[31m\u000a\u202e\u2028\udb40\udc01\ud800é😀`,
  );
});

Deno.test("escapeAndTruncate() returns printable text unchanged", () => {
  assertEquals(escapeAndTruncate("6 × 7 is 42 😀", 100), "6 × 7 is 42 😀");
  assertEquals(escapeAndTruncate("ééé", 6), "ééé");
  assertEquals(escapeAndTruncate("éééé", 6), "é…");
});

Deno.test("quoteTruncated() cuts text before it quotes it", () => {
  assertEquals(quoteTruncated('a"b', 80), '"a\\"b"');
  assertEquals(quoteTruncated("x".repeat(300)), `"${"x".repeat(200)}"`);
});

Deno.test("escapeHtml() escapes markup and quotes", () => {
  assertEquals(escapeHtml('<a href="x">&</a>'), "&lt;a href=&quot;x&quot;&gt;&amp;&lt;/a&gt;");
});

Deno.test("hasControl() and hasSpace() find ASCII control characters and spaces", () => {
  for (const text of ["a\u0000", "a\n", "\u007f"]) {
    assertEquals([hasControl(text), hasSpace(text)], [true, true]);
  }
  assertEquals([hasControl("a b"), hasSpace("a b")], [false, true]);
  assertEquals([hasControl("aé"), hasSpace("aé")], [false, false]);
});
