/** The fault matrix over Anthropic's wire format. */
import { ANTHROPIC } from "./providers/anthropic_wire.ts";
import { testFaults } from "./providers/faults.ts";

testFaults(ANTHROPIC);
