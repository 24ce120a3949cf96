// The certificates of public authorities that go into the images, pinned; apart
// from go.mod, so that they are no dependency of the product.
module github.com/sidebeat/sidebeat/roots

go 1.26.0

require golang.org/x/crypto/x509roots/fallback v0.0.0-20261030153154-30a33513ff6d
