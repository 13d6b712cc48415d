/** How the effect of a setting is shown, and the tests of a table of effects. */
import { ALL_SETTINGS, OVERLAY_SECTIONS } from "../../../src/policy/settings.ts";
import type { JsonObject } from "../../../src/sdk/types.ts";
import { assertEquals } from "../../assert.ts";
import { serverWith, type SettingServer, type Where } from "./kit.ts";

/** The effect of one setting. */
export interface Effect {
  /** The value. */
  value: unknown;
  /** Further settings of the server. */
  beside?: JsonObject;
  /** The effect with this value. */
  seen: unknown;
  /** The effect with the default; absent where the test would take too long. */
  usual?: unknown;
  look(server: SettingServer): Promise<unknown>;
  /** Folder of named plans. */
  plans?: URL;
}

/** Tests a setting that only has an effect on the program itself. */
export interface ProgramEffect {
  look_at_program(): Promise<void>;
}

/** Effects by the dotted names of their settings. */
export type Effects = Readonly<Record<string, Effect | ProgramEffect>>;

/** Resolves to how a run of a plan stopped, or to the code of the error. */
export const stopReason = async (server: SettingServer, plan: unknown) => {
  const run = await server.run(plan);
  return typeof run === "string" ? run : run.stop_reason;
};

/** Resolves to the type of the error that a tool ended with, else `ok`. */
export async function toolOutcome(server: SettingServer, plan: unknown): Promise<unknown> {
  const run = await server.run(plan);
  const [failed] = await server.entries(run, "tool:error");
  const [done] = await server.entries(run, "tool:post");
  return failed?.error?.type ?? done?.result?.error?.type ?? (done ? "ok" : run);
}

/**
 * Registers the tests of each effect: for the server, in the policy of a key where it may be there, and by
 * default.
 */
export function testEffects(effects: Effects): void {
  for (const { path, for_keys } of ALL_SETTINGS) {
    const effect = effects[path];
    if (effect === undefined) continue; // of another table
    if ("look_at_program" in effect) {
      Deno.test(`${path} has an effect`, effect.look_at_program);
      continue;
    }
    const { value, beside = {}, seen, usual, look, plans = null } = effect;
    const per_key = for_keys === undefined &&
      OVERLAY_SECTIONS.some((section) => path.startsWith(`${section}.`));
    for (
      const where of per_key ? ["server", "key"] as const : ["server"] as const satisfies readonly Where[]
    ) {
      Deno.test(`${path} has an effect${where === "key" ? " in the policy of a key" : ""}`, async () => {
        await using server = serverWith(path, value, where, { beside, plans });
        assertEquals(await look(server), seen);
      });
    }
    if (usual === undefined) continue;
    Deno.test(`${path} has another effect by default`, async () => {
      await using server = serverWith(path, undefined, "server", { beside, plans });
      assertEquals(await look(server), usual);
    });
  }
}
