/** Serves the host's calls of the module's objects. */
import { type AnswerBounds, checkAnswerBounds } from "../../sdk/checks.ts";
import { isObject, type JsonObject, toPlain } from "../../sdk/json.ts";
import { toChatResponse } from "../../sdk/messages.ts";
import { bind, map, Reflect } from "../../sdk/primordials.ts";
import { inputSchemaOf, methodOf } from "../../sdk/snake_case_aliases.ts";
import { toToolResult } from "../../sdk/tools.ts";
import type { ChatRequest, ChatResponse, Message, Prompt } from "../../sdk/types.ts";
import { plainCall } from "../protocol.ts";
import type { GuestCoordinator } from "./coordinator_proxy.ts";
import type { GuestObjects } from "./exported_objects.ts";
import type { OpenCall } from "./rpc.ts";

/** Serves a call of an object; resolves to plain data. */
export async function serveCall(
  call: OpenCall,
  objects: GuestObjects,
  coordinator: GuestCoordinator,
): Promise<unknown> {
  const { point, object } = objects.get(call.ref);
  switch (point) {
    case "tools":
      return await serveTool(call, object);
    case "providers":
      return await serveProvider(call, object);
    case "context":
      return await serveContext(call, object, coordinator);
    case "orchestrator":
      return await serveOrchestrator(call, object, coordinator);
    default:
      return await serveFunction(call, object);
  }
}

/** Serves a call of a tool. `checkInput` evaluates the tool's schema here, where a slow schema delays only its own module. */
async function serveTool({ method, args, signal, note }: OpenCall, tool: object): Promise<unknown> {
  const input = args[0] as JsonObject; // messages of the host are well-formed
  if (method === "checkInput") {
    const { inputProblems } = await import("../../sdk/loop/tool_input_validation.ts");
    return await inputProblems({ input_schema: inputSchemaOf(tool) }, input);
  }
  const { id, session_id } = args[1] as { id: string; session_id: string };
  const progress = (text: string) => note(String(text));
  const returned = await methodOf(tool, "execute")!(input, { id, session_id, signal, progress });
  const { success, output, error } = toToolResult(returned);
  return { success, output, error };
}

async function serveProvider({ method, args, signal, note }: OpenCall, provider: object): Promise<unknown> {
  if (method === "listModels") return toPlain(await methodOf(provider, "listModels")!());
  const request = args[0] as ChatRequest;
  const options = args[1] === true
    ? { signal, onDelta: (delta: unknown) => note(toPlain(delta)) }
    : { signal };
  const answer = await methodOf(provider, "complete")!(request, options);
  const bounds = args[2] as AnswerBounds; // from the host
  checkAnswerBounds(answer, bounds); // here, so that the host never reads an answer that is too large
  // an invalid answer is sent as it is: the guard in the host reports what is wrong
  if (typeof answer !== "string" && !isObject(answer)) return toPlain(answer);
  const parse = methodOf(provider, "parseToolCalls") as ((response: ChatResponse) => unknown) | undefined;
  const response = toChatResponse(answer, parse);
  checkAnswerBounds(response, bounds); // the provider may parse calls from its content
  const plain = toPlain(response) as JsonObject;
  if (response.tool_calls) plain.tool_calls = map(response.tool_calls, plainCall);
  return plain;
}

async function serveContext(
  { method, args }: OpenCall,
  context: object,
  coordinator: GuestCoordinator,
): Promise<unknown> {
  if (method === "setSystemPromptFactory") {
    const factory = args[0] === null ? null : () => coordinator.callBack(args[0] as string);
    return toPlain(methodOf(context, method)!(factory));
  }
  if (method === "getMessagesForRequest" && isObject(args[0])) {
    const { provider, ...options } = args[0];
    const found = typeof provider === "string" ? coordinator.providers[provider] : undefined;
    return toPlain(await methodOf(context, method)!(found ? { ...options, provider: found } : options));
  }
  return toPlain(await methodOf(context, method)!(...args as Message[])); // as in the contract
}

async function serveOrchestrator(
  { args }: OpenCall,
  orchestrator: object,
  coordinator: GuestCoordinator,
): Promise<unknown> {
  const { 0: prompt, 1: options } = args as [Prompt, JsonObject];
  const { providers, tools, hooks } = coordinator;
  const execute = methodOf(orchestrator, "execute")!;
  const execute_options = { ...options, coordinator };
  return toPlain(await execute(prompt, coordinator.conversation, providers, tools, hooks, execute_options));
}

/** Calls a function (method `""`) or a method of any other object. */
async function serveFunction({ method, args }: OpenCall, object: object): Promise<unknown> {
  const called = method === ""
    ? object as (...args: unknown[]) => unknown
    : methodOf(object, method) ?? symbolMethod(object, method);
  if (typeof called !== "function") throw new Error(`Cannot call ${method}: the object has no such method`);
  const value = await called(...args);
  return value === undefined ? undefined : toPlain(value);
}

function symbolMethod(object: object, method: string): ((...args: unknown[]) => unknown) | undefined {
  const symbol = method === "@@asyncDispose" ? Symbol.asyncDispose : Symbol.dispose;
  const found = Reflect.get(object, symbol);
  return typeof found === "function" ? bind(found, object) : undefined;
}
