//go:build manual

package main

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"topdog/internal/lab/manual"
)

// With the tag manual and this word, the program writes its manual pages, for scripts/package. They are for VERSION and the
// time SOURCE_DATE_EPOCH, and go below STAGE.
const manualWord = "manual-pages"

func init() { lives[manualWord] = writeManual }

func writeManual() error {
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH is not the time of the pages, in seconds: %w", err)
	}
	operations, err := os.ReadFile("docs/operations.md")
	if err != nil {
		return err
	}
	foot := manual.Foot{Version: os.Getenv("VERSION"), Date: time.Unix(epoch, 0).UTC()}
	return manual.Write(rootCommand(), string(operations), foot, os.Getenv("STAGE"))
}
