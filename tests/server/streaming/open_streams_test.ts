import { errorCode } from "../../../src/sdk/errors.ts";
import { OpenStreams } from "../../../src/server/streaming/open_streams.ts";
import { assertEquals, assertThrows } from "../../assert.ts";

Deno.test("OpenStreams counts streams by caller and in total, until they end", () => {
  const streams = new OpenStreams();
  const limits = { max_streams: 3, max_streams_per_key: 2 };
  const refused = (caller: string) => errorCode(assertThrows(() => streams.check(caller, limits)));
  streams.check("a", limits);
  const ends = [streams.add("a"), streams.add("a")];
  assertEquals(refused("a"), "too_many_streams");
  streams.check("b", limits);
  ends.push(streams.add("b"));
  assertEquals([refused("b"), refused("c")], ["too_many_streams", "too_many_streams"]);
  ends[0]!();
  streams.check("a", limits);
  streams.check("c", {}); // unlimited
  ends.slice(1).forEach((end) => end());
  for (const caller of ["a", "b", "c"]) streams.check(caller, { max_streams: 1, max_streams_per_key: 1 });
});
