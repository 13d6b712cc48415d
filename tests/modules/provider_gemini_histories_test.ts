/** Any history becomes a request that the Gemini API accepts: the documented rules of `contents`. */
import type { JsonObject } from "preamp";
import type { Content, Part } from "../../modules/provider-gemini/client_types.ts";
import { toRequest } from "../../modules/provider-gemini/request.ts";
import { assert, assertEquals } from "../assert.ts";
import { testHistories } from "./providers/histories.ts";

const KINDS = ["text", "functionCall", "functionResponse", "inlineData", "fileData"] as const;

function checkContents(body: JsonObject, signs: boolean): void {
  const contents = body.contents as Content[];
  assertEquals(
    contents.map(({ role }) => role),
    contents.map((_, index) => index % 2 === 0 ? "user" : "model"),
  );
  assertEquals(contents.at(-1)!.role, "user");
  contents.forEach(({ role, parts }, index) => {
    assert(parts.length > 0);
    for (const part of parts) checkPart(part, role);
    const calls = parts.flatMap(({ functionCall }) => functionCall ?? []);
    const answers = contents[index + 1]?.parts.flatMap(({ functionResponse }) => functionResponse ?? []) ??
      [];
    if (role === "model") {
      assertEquals(answers.map(({ id, name }) => [id, name]), calls.map(({ id, name }) => [id, name]));
      const first = parts.find(({ functionCall }) => functionCall);
      assertEquals(first?.thoughtSignature !== undefined, signs && first !== undefined);
    }
  });
  assertEquals(contents[0]!.parts.some(({ functionResponse }) => functionResponse), false);
}

function checkPart(part: Part, role: Content["role"]): void {
  const kinds = KINDS.filter((kind) => part[kind] !== undefined);
  assertEquals(kinds.length, 1, JSON.stringify(part));
  if (part.functionCall) assertEquals([role, typeof part.functionCall.args], ["model", "object"]);
  if (part.functionResponse) assertEquals([role, typeof part.functionResponse.response], ["user", "object"]);
  if (part.text !== undefined) assert(part.text.trim() !== "" && part.text.isWellFormed());
}

testHistories(
  "gemini",
  (call) => toRequest(call, { include_thoughts: true }),
  (body) => checkContents(body, true),
  {
    model: "gemini-3.8-flash",
  },
);
testHistories(
  "gemini before 3",
  (call) => toRequest(call, { include_thoughts: true }),
  (body) => checkContents(body, false),
  { model: "gemini-2.5-flash" },
);
