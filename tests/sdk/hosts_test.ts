import { isHostGranted } from "preamp";
import { assertEquals } from "../assert.ts";

Deno.test("isHostGranted() compares hosts and ports", () => {
  const cases: [string[] | boolean, string, boolean][] = [
    [["example.com"], "https://example.com/mcp", true],
    [["example.com"], "https://example.com.evil.org/mcp", false],
    [["example.com:443"], "https://example.com/mcp", true],
    [["example.com:443"], "http://example.com/mcp", false],
    [["*.example.com"], "https://mcp.example.com/", true],
    [["*.example.com"], "https://notexample.com/", false],
    [["[::1]:80"], "http://[::1]/", true],
    [["127.0.0.1"], "http://2130706433/", true],
    [[], "https://example.com/", false],
    [false, "https://example.com/", false],
    [true, "https://example.com/", true],
  ];
  for (const [net, url, granted] of cases) {
    assertEquals(isHostGranted(net, new URL(url)), granted, `${net} ${url}`);
  }
});
