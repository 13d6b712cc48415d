/** A conversation as its commands see it. */
import type { Runtime } from "../../app/types.ts";
import type { ExplainedMode } from "../../plan/modes.ts";
import type { Run, RunRequest } from "../../runs/types.ts";
import type { FoundCommand } from "../../sdk/contracts.ts";
import type { Io } from "../terminal/io.ts";
import type { PersonInput } from "../terminal/line_input.ts";
import type { AllowedCalls } from "./allowed.ts";
import type { ChatView } from "./view.ts";

/** The plan of a conversation; `plan` is absent for a continued session, which has its own. */
export interface ChatPlan extends Pick<RunRequest, "plan" | "model" | "mode"> {
  base_url?: string;
}

/** Collaborators and options of a conversation. */
export interface ChatOptions {
  readonly io: Io;
  /** Returns a variable with the key or the address of a vendor. */
  readonly env: Io["env"];
  readonly runtime: Runtime;
  readonly input: PersonInput;
  readonly view: ChatView;
  /** Calls that the person has allowed for longer. */
  readonly allowed: AllowedCalls;
  /** Folder of `@file`, `!command` and `/export`. */
  readonly workspace: URL;
  readonly plan: ChatPlan;
  /** Resolves to the plan of a session that begins; to null, after a message, without a model. */
  newPlan(): Promise<ChatPlan | null>;
  /** Session to continue; null begins one. */
  readonly session_id: string | null;
  /** Name of a session that begins. Default: its first message. */
  readonly session_name: string | null;
  /** Resolves to the modes of the plan. */
  modes(plan: ChatPlan, session_id: string | null): Promise<readonly ExplainedMode[]>;
  /** Resolves to the words that start something in a prompt, as `/NAME`: those of the plan's skills. */
  promptCommands(plan: ChatPlan, session_id: string | null): Promise<readonly FoundCommand[]>;
  /** Messages that are sent before the first one is read. */
  readonly first_messages?: readonly string[];
}

/** The state of a conversation, which commands read and change. */
export interface Conversation {
  readonly options: ChatOptions;
  plan: ChatPlan;
  readonly session_id: string | null;
  /** The last run; null before the first. */
  readonly last_run: Run | null;
  /** Sends a message and displays its run. */
  send(text: string): Promise<void>;
  /** Ends the conversation after what is running. */
  leave(): void;
  /**
   * Begins a session with the same plan.
   *
   * @param carried What the agent reads with the next message. Default: nothing.
   */
  restart(carried?: string): Promise<void>;
  /** Continues another session. `plan`: default its own. */
  continueIn(session_id: string, plan?: ChatPlan): void;
  /** Begins a session, and resolves to whether there is a plan for it. */
  begin(): Promise<boolean>;
}
