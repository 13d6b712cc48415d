import { unusedName } from "../../modules/ai-sdk/names.ts";
import { assertEquals } from "../assert.ts";

Deno.test("unusedName() numbers a name that is in use, within 64 characters", () => {
  const [long, used] = ["n".repeat(64), new Set(["search", "search_3"])];
  const names = ["search", "search", "search", "other", long, long].map((wanted) => unusedName(wanted, used));
  assertEquals(names, ["search_2", "search_4", "search_5", "other", long, `${"n".repeat(60)}_2`]);
  assertEquals(used, new Set(["search", "search_3", ...names]));
});
