/** Calls that a server sends twice. */
import * as fc from "fast-check";
import { AnswerBlocks } from "preamp/provider";
import { assertEquals } from "../../assert.ts";

/** Adds a call in deltas of its arguments. */
function stream(blocks: AnswerBlocks, key: string, id: string, args: string, cut: number): void {
  blocks.startCall(key, id, "look");
  blocks.appendArguments(key, args.slice(0, cut));
  blocks.appendArguments(key, args.slice(cut));
}

Deno.test("AnswerBlocks makes one call of those with the same id, name and arguments, of any others several", () => {
  const call = fc.record({
    id: fc.constantFrom("a", "b", ""),
    args: fc.constantFrom({}, { x: 1 }, { x: 1, y: [2] }),
    indent: fc.constantFrom(0, 1),
    cut: fc.integer({ min: 0, max: 4 }),
    is_whole: fc.boolean(),
  });
  fc.assert(fc.property(fc.array(call, { maxLength: 5 }), fc.boolean(), (calls, is_used) => {
    const ids: string[] = [];
    const blocks = new AnswerBlocks(is_used ? ["a"] : [], {
      onDelta: ({ id }) => ids.push(...(id ? [id] : [])),
    });
    const expected = new Map<string, object>();
    calls.forEach(({ id, args, indent, cut, is_whole }, index) => {
      const text = JSON.stringify(args, null, indent);
      if (is_whole) blocks.addCall({ id, name: "look", arguments: text });
      else stream(blocks, `key ${index}`, id, text, cut);
      expected.set(id === "" ? String(index) : `${id} ${JSON.stringify(args)}`, args);
    });
    const read = blocks.calls();
    const sorted = (list: Iterable<object>) => [...list].map((one) => JSON.stringify(one)).sort();
    assertEquals(sorted(read.map(({ arguments: input }) => input)), sorted(expected.values()));
    assertEquals(new Set(read.map(({ id }) => id)).size, read.length);
    assertEquals(ids, read.map(({ id }) => id));
    const first = read.map(({ id }) => id).filter((id) => id === "a");
    assertEquals(is_used ? first : first.slice(1), []);
  }));
});

Deno.test("AnswerBlocks drops a call that repeats only the beginning of another one", () => {
  const blocks = new AnswerBlocks([]);
  stream(blocks, "1", "a", '{"x":1}', 3);
  blocks.startCall("2", "a", "look");
  blocks.appendArguments("2", '{"x"');
  assertEquals(blocks.calls().map(({ id }) => id), ["a"]);
});
