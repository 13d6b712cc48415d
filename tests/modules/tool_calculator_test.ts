import fc from "fast-check";
import { assert, assertEquals, assertMatch, assertStringIncludes } from "../assert.ts";
import { call, fakeCoordinator } from "../support/coordinator.ts";
import { module, mount } from "../../modules/tool-calculator/mod.ts";
import { formatNumber } from "../../modules/tool-calculator/evaluate.ts";

async function calculate(expression: unknown) {
  const fake = fakeCoordinator();
  await mount(fake.coordinator);
  return await call(fake, "calculator", { expression });
}

async function valueOf(expression: string) {
  const result = await calculate(expression);
  return result.success ? result.output : result.error;
}

async function failureOf(expression: unknown) {
  const result = await calculate(expression);
  assertEquals(result.success, false, `${expression} gave ${result.output}`);
  return result.error as { type: string; message: string };
}

Deno.test("calculator adds when asked 2 + 2", async () => {
  assertEquals(await calculate("2 + 2"), { success: true, output: "4" });
});

Deno.test("calculator fails with unknown_name when the expression is a word", async () => {
  const result = await calculate("invalid");
  assertEquals(result.success, false);
  assertEquals((result.error as { type: string }).type, "unknown_name");
});

Deno.test("mount() mounts the tool under its name and returns what it provides", async () => {
  const fake = fakeCoordinator();
  const returned = await mount(fake.coordinator);
  assertEquals(Object.keys(fake.tools), ["calculator"]);
  assertEquals(fake.tools.calculator?.name, "calculator");
  assertEquals(fake.tools.calculator?.idempotent, true);
  assertEquals(returned, { name: module.id, version: "1.0.0", provides: ["calculator"] });
});

const VALUES: [string, string][] = [
  ["6*7", "42"],
  ["6 × 7", "42"],
  ["84 ÷ 2", "42"],
  ["1 − 3", "-2"],
  ["1 + 2 * 3", "7"],
  ["(1 + 2) * 3", "9"],
  ["2 - 3 - 4", "-5"],
  ["64 / 4 / 2", "8"],
  ["2 ^ 3 ^ 2", "512"],
  ["2 ** 10", "1024"],
  ["-2 ^ 2", "-4"],
  ["2 ^ -1", "0.5"],
  ["--3", "3"],
  ["+-+3", "-3"],
  ["2 * -3", "-6"],
  ["7 % 3", "1"],
  ["-7 % 3", "2"],
  ["7 % -3", "-2"],
  ["mod(-7, 3)", "2"],
  ["0.1 + 0.2", "0.3"],
  [".5 + 5.", "5.5"],
  ["1e3 + 1E-3", "1000.001"],
  ["1 / 3", "0.333333333333333"],
  ["2 * e", "5.43656365691809"],
  ["pi", "3.14159265358979"],
  ["2 * π - tau", "0"],
  ["sin(pi / 2)", "1"],
  ["cos(PI)", "-1"],
  ["sqrt(16) + cbrt(27)", "7"],
  ["min(3, 1, 2) + max(3, 1, 2)", "4"],
  ["round(2.5)", "3"],
  ["round(-2.5)", "-3"],
  ["round(1.005, 2)", "1.01"],
  ["round(1234, -2)", "1200"],
  ["floor(-1.5) + ceil(-1.5) + trunc(-1.5)", "-4"],
  ["ln(e) + log(e) + log10(1000) + log2(8) + log(81, 3)", "12"],
  ["exp(0) + abs(-1) + sign(-9)", "1"],
  ["pow(2, 0.5) ^ 2", "2"],
  ["atan2(1, 1) * 4", "3.14159265358979"],
  ["hypot(3, 4)", "5"],
  ["0 * -1", "0"],
  ["2 ^ 53 - 1", "9007199254740991"],
  ["2 ^ 64", "1.84467440737096e+19"],
  ["1e-9", "1e-9"],
  ["\u00a01\t+\n1 ", "2"],
];

for (const [expression, expected] of VALUES) {
  Deno.test(`calculator gives ${expected} when asked ${JSON.stringify(expression)}`, async () => {
    assertEquals(await valueOf(expression), expected);
  });
}

const FAILURES: [string, string, string][] = [
  ["", "syntax_error", "it is empty"],
  ["1 +", "syntax_error", "unexpected end of the expression at position 4"],
  ["1 2", "syntax_error", 'unexpected "2" at position 3'],
  ["2e", "syntax_error", 'unexpected "e" at position 2'],
  ["1.2.3", "syntax_error", "position 4"],
  ["(1", "syntax_error", 'expected ")"'],
  ["1)", "syntax_error", 'unexpected ")" at position 2'],
  ["1 $ 2", "syntax_error", 'unexpected "$" at position 3'],
  ["max()", "syntax_error", "takes at least 1 arguments, not 0"],
  ["sqrt(1, 2)", "syntax_error", "takes 1 arguments, not 2"],
  ["sqrt 4", "syntax_error", 'expected "("'],
  ["1 / 0", "division_by_zero", "division by zero"],
  ["1 % 0", "division_by_zero", "modulo by zero"],
  ["0 ^ -1", "division_by_zero", "zero to a negative power"],
  ["2 * foo", "unknown_name", 'unknown name "foo" at position 5'],
  ["constructor", "unknown_name", "constructor"],
  ["__proto__(1)", "unknown_name", "__proto__"],
  ["sqrt(-1)", "domain_error", "sqrt is not a real number"],
  ["(-8) ^ 0.5", "domain_error", "not a real number"],
  ["log(8, 1)", "division_by_zero", "division by zero"],
  ["round(1, 0.5)", "domain_error", "whole digits"],
  ["10 ^ 400", "overflow", "too large"],
  ["1e400", "overflow", "too large"],
  ["ln(0)", "domain_error", "ln is not a real number"],
  ["log(8, -2)", "domain_error", "not a real number"],
  ["-10 ^ 300 * 10 ^ 300", "overflow", "too large"],
];

for (const [expression, type, text] of FAILURES) {
  Deno.test(`calculator fails with ${type} when asked ${JSON.stringify(expression)}`, async () => {
    const error = await failureOf(expression);
    assertEquals(error.type, type);
    assertStringIncludes(error.message, text);
  });
}

Deno.test("calculator fails with tool_input_invalid when the expression is not text", async () => {
  for (const value of [undefined, null, 4, ["1"]]) {
    assertEquals((await failureOf(value)).type, "tool_input_invalid");
  }
});

Deno.test("calculator refuses an expression when it has more than 10,000 characters", async () => {
  assertEquals(await valueOf("1+".repeat(4_999) + "11"), "5010");
  assertEquals((await failureOf("1+".repeat(5_000) + "1")).type, "expression_too_long");
});

Deno.test("calculator refuses an expression when it nests deeper than 200 levels", async () => {
  assertEquals(await valueOf("(".repeat(200) + "1" + ")".repeat(200)), "1");
  for (
    const deep of ["(".repeat(4_000), "-".repeat(9_000) + "1", "2^".repeat(4_000) + "1", "abs(".repeat(2_000)]
  ) {
    assertEquals((await failureOf(deep)).type, "expression_too_deep");
  }
});

Deno.test("calculator never throws, whatever the expression", async () => {
  const pieces = fc.constantFrom(
    "1",
    "2.5",
    "e",
    "pi",
    "+",
    "-",
    "*",
    "/",
    "%",
    "^",
    "(",
    ")",
    ",",
    "max",
    "x",
    " ",
    "é",
  );
  await fc.assert(fc.asyncProperty(fc.array(pieces, { maxLength: 30 }), async (parts) => {
    const result = await calculate(parts.join(""));
    if (result.success) assertMatch(String(result.output), /^-?\d+(\.\d+)?(e[+-]\d+)?$/);
    else assert((result.error as { message: string }).message.startsWith("Cannot evaluate the expression: "));
  }));
});

Deno.test("calculator agrees with JavaScript when the expression has its operators only", async () => {
  const tree = fc.letrec<{ node: string }>((tie) => ({
    node: fc.oneof(
      { maxDepth: 4 },
      fc.integer({ min: 0, max: 99 }).map(String),
      fc.tuple(tie("node"), fc.constantFrom("+", "-", "*"), tie("node")).map(([a, op, b]) =>
        `(${a} ${op} ${b})`
      ),
      fc.tuple(tie("node"), fc.constantFrom("+", "-"), fc.integer({ min: 0, max: 9 })).map(([a, op, b]) =>
        `${a} ${op} ${b} * 3`
      ),
      tie("node").map((a) => `-(${a})`),
    ),
  })).node;
  await fc.assert(fc.asyncProperty(tree, async (expression) => {
    const expected = new Function(`return ${expression}`)() as number;
    assertEquals(await valueOf(expression), formatNumber(expected));
  }));
});

Deno.test("formatNumber() prints whole numbers in full and rounds others to 15 digits", () => {
  assertEquals(
    [-0, 999999999999999.9, 1e20, -1e300, 123456789.125, 9007199254740991].map(formatNumber),
    ["0", "1000000000000000", "1e+20", "-1e+300", "123456789.125", "9007199254740991"],
  );
});
