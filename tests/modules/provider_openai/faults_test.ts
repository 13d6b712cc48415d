/** The fault matrix of providers, over the Responses API and Chat Completions. */
import { testFaults } from "../providers/faults.ts";
import { CHAT, RESPONSES } from "./vendors.ts";

testFaults(RESPONSES);
testFaults(CHAT);
