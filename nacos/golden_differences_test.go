package nacos

// Why an answer of ours is not the recorded one.
const (
	fresher       = "our reads do not lag our writes"
	notBuilt      = "the rest of the API comes with the comparison of all recordings"
	parserWords   = "the frame is the same, but JSON faults are in our parser's words, not in Jackson's"
	noGhost       = "a beat without an address registers no ghost"
	postBeat      = "POST is taken too, as some documents have it"
	anyName       = "a beat that is answered 10200 has refreshed, whatever name its JSON bears"
	noPointer     = "2.5.1 trips over a null after it did the work"
	badPeriod     = "a period that is no number falls back to the default"
	healthWorks   = "health of persistent instances can be set, and shows"
	noProber      = "no prober runs in this test"
	no101         = "a client cannot read status 101"
	sorted        = "services are listed in order"
	clearer       = "a missing parameter is the client's fault, not the server's"
	otherContents = "the recorded server held the services of other scenarios"
	noConfig      = "settings of the configuration service, which we have not"
	everybodyIn   = "auth is off: everybody gets a token"
)

// differences lists each recorded step that our server answers otherwise, with
// the reason.
var differences = map[string]map[int]string{
	"01-detail-deregister":  {18: fresher},
	"01-update":             {19: notBuilt, 20: notBuilt, 21: notBuilt, 26: notBuilt},
	"02-beat-basic":         {19: postBeat, 22: parserWords, 23: parserWords, 24: parserWords, 31: noGhost, 32: noGhost, 33: noGhost},
	"02-beat-health":        {3: fresher, 6: fresher, 16: noPointer, 18: noPointer},
	"02-beat-name-mismatch": {18: anyName, 19: anyName, 20: anyName, 24: anyName, 25: anyName, 26: anyName},
	"03-expiry-badmeta":     {10: badPeriod, 11: badPeriod},
	"03-expiry-beaten":      {7: fresher, 8: fresher},
	"04-persistent-health": {
		10: healthWorks, 11: healthWorks, 12: healthWorks, 13: healthWorks, 14: healthWorks,
		19: fresher, 20: fresher, 21: fresher, 25: fresher, 26: fresher,
	},
	"04-persistent-stays": {3: noProber, 4: noProber},
	"07-freshness":        {2: fresher, 3: fresher, 7: fresher, 8: fresher, 12: fresher, 13: fresher, 17: fresher, 18: fresher},
	"07-service-v1":       {8: no101, 18: sorted, 26: notBuilt, 27: notBuilt, 28: notBuilt},
	"08-catalog":          {15: clearer},
	"08-cluster":          {15: no101, 16: no101},
	"08-operator": {
		0: notBuilt, 2: otherContents, 5: notBuilt, 6: notBuilt, 8: notBuilt, 9: notBuilt, 10: notBuilt, 11: notBuilt,
		12: notBuilt, 13: notBuilt, 14: notBuilt, 17: noConfig, 18: notBuilt, 19: notBuilt, 20: notBuilt, 21: notBuilt, 22: notBuilt,
	},
	"10-login-auth-off": {0: everybodyIn, 1: everybodyIn, 2: everybodyIn, 3: everybodyIn, 4: everybodyIn, 5: everybodyIn},
}
