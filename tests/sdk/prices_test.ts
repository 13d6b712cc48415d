import { assertEquals, assertThrows } from "../assert.ts";
import { costOf, parsePrices, Usage } from "preamp";

const PRICES = { input: "3", output: "15" };

Deno.test("costOf() counts tokens at their prices, exactly", () => {
  assertEquals(costOf(Usage({ input_tokens: 1_000_000, output_tokens: 0 }), PRICES), "3");
  assertEquals(costOf(Usage({ input_tokens: 1, output_tokens: 1 }), PRICES), "0.000018");
  assertEquals(costOf(Usage({}), PRICES), "0");
  assertEquals(costOf(Usage({ input_tokens: 3 }), { input: "0.1", output: "0.1" }), "0.0000003");
});

Deno.test("costOf() takes cache reads and cache writes out of the input", () => {
  const usage = Usage({
    input_tokens: 1000,
    output_tokens: 100,
    cache_read_tokens: 400,
    cache_write_tokens: 200,
  });
  assertEquals(costOf(usage, PRICES), "0.0045"); // 1000 at 3 and 100 at 15
  const cheaper = { ...PRICES, cache_read: "0.30", cache_write: "3.75" };
  assertEquals(costOf(usage, cheaper), "0.00357"); // 400 at 3, 400 at 0.30, 200 at 3.75, 100 at 15
});

Deno.test("costOf() never counts more cache reads than there was input", () => {
  const usage = { input_tokens: 10, output_tokens: 0, total_tokens: 10, cache_read_tokens: 500 };
  assertEquals(costOf(usage, { ...PRICES, cache_read: "1" }), "0.00001");
});

Deno.test("parsePrices() returns prices, and names the place of an invalid one", () => {
  assertEquals(parsePrices({ ...PRICES, cache_read: "0" }), { ...PRICES, cache_read: "0" });
  const wrong: [value: unknown, message: string][] = [
    [undefined, "Cannot read prices.input: must be US dollars per million tokens as a decimal string"],
    [{ input: "1" }, "Cannot read prices.output"],
    [{ input: 3, output: "15" }, 'such as "0.30": received 3'],
    [{ ...PRICES, cache_write: "-1" }, "Cannot read prices.cache_write"],
  ];
  for (const [value, message] of wrong) assertThrows(() => parsePrices(value), TypeError, message);
});
